#!/usr/bin/env python3
"""Encodes models for the tests of F::CaffeFunction with Google's protobuf.

usage: encode_models.py FOLDER    every NAME.prototxt there becomes NAME.caffemodel
       encode_models.py --check   status 0 if protobuf is there
"""
import pathlib
import sys

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
except ImportError as error:
    sys.exit(f"encode_models.py: {error}")

# message: field=number type, "*" repeated, "+" packed; a type is that of protobuf or a message.
SCHEMA = {
    "Net": "name=1 string, layers=2 V1Layer*, input=3 string*, input_dim=4 int32*, "
           "input_shape=8 Shape*, layer=100 Layer*",
    "Layer": "name=1 string, type=2 string, bottom=3 string*, top=4 string*, blobs=7 Blob*, phase=10 int32, loss_param=101 Loss, "
             "concat_param=104 Concat, convolution_param=106 Convolution, dropout_param=108 Dropout, "
             "eltwise_param=110 Eltwise, inner_product_param=117 InnerProduct, lrn_param=118 LRN, "
             "pooling_param=121 Pooling, relu_param=123 ReLU, softmax_param=125 Softmax, slice_param=126 Slice, "
             "batch_norm_param=139 BatchNorm, scale_param=142 Scale",
    "V1Layer": "bottom=2 string*, top=3 string*, name=4 string, type=5 int32, blobs=6 Blob*, blobs_lr=7 float*, "
               "concat_param=9 Concat, convolution_param=10 Convolution, dropout_param=12 Dropout, "
               "inner_product_param=17 InnerProduct, lrn_param=18 LRN, pooling_param=19 Pooling, "
               "eltwise_param=24 Eltwise, relu_param=30 ReLU, slice_param=31 Slice, softmax_param=39 Softmax, "
               "loss_param=42 Loss",
    "Blob": "num=1 int32, channels=2 int32, height=3 int32, width=4 int32, data=5 float+, diff=6 float+, "
            "shape=7 Shape, double_data=8 double+",
    "Shape": "dim=1 int64+",
    "Convolution": "num_output=1 uint32, bias_term=2 bool, pad=3 uint32*, kernel_size=4 uint32*, group=5 uint32, "
                   "stride=6 uint32*, pad_h=9 uint32, pad_w=10 uint32, kernel_h=11 uint32, kernel_w=12 uint32, "
                   "stride_h=13 uint32, stride_w=14 uint32, axis=16 int32, dilation=18 uint32*",
    "Pooling": "pool=1 int32, kernel_size=2 uint32, stride=3 uint32, pad=4 uint32, kernel_h=5 uint32, "
               "kernel_w=6 uint32, stride_h=7 uint32, stride_w=8 uint32, pad_h=9 uint32, pad_w=10 uint32, "
               "global_pooling=12 bool, round_mode=13 int32",
    "InnerProduct": "num_output=1 uint32, bias_term=2 bool, axis=5 int32, transpose=6 bool",
    "LRN": "local_size=1 uint32, alpha=2 float, beta=3 float, norm_region=4 int32, k=5 float",
    "Concat": "concat_dim=1 uint32, axis=2 int32",
    "Slice": "slice_dim=1 uint32, slice_point=2 uint32*, axis=3 int32",
    "Dropout": "dropout_ratio=1 float",
    "ReLU": "negative_slope=1 float",
    "Softmax": "axis=2 int32",
    "Loss": "ignore_label=1 int32, normalize=2 bool, normalization=3 int32",
    "Eltwise": "operation=1 int32, coeff=2 float*",
    "BatchNorm": "use_global_stats=1 bool, moving_average_fraction=2 float, eps=3 float",
    "Scale": "axis=1 int32, num_axes=2 int32, bias_term=4 bool",
}


def net_class():
    file = descriptor_pb2.FileDescriptorProto(name="net.proto", package="net", syntax="proto2")
    field_type = descriptor_pb2.FieldDescriptorProto
    for name, fields in SCHEMA.items():
        message = file.message_type.add(name=name)
        for entry in fields.split(","):
            key, kind = entry.split()
            label = field_type.LABEL_REPEATED if kind[-1] in "*+" else field_type.LABEL_OPTIONAL
            field = message.field.add(name=key.split("=")[0], number=int(key.split("=")[1]), label=label)
            field.options.packed = kind.endswith("+")
            kind = kind.rstrip("*+")
            if kind in SCHEMA:
                field.type, field.type_name = field_type.TYPE_MESSAGE, f".net.{kind}"
            else:
                field.type = getattr(field_type, f"TYPE_{kind.upper()}")
            if not field.options.packed:
                field.ClearField("options")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName("net.Net")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


def main():
    if sys.argv[1:] == ["--check"]:
        return
    net = net_class()
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.prototxt")):
        model = text_format.Parse(path.read_text(), net())
        path.with_suffix(".caffemodel").write_bytes(model.SerializeToString())


main()
