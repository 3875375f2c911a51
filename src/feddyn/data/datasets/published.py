"""The data sets of the paper as they were published: files, checksums, addresses, and how they are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from feddyn.data.datasets import decode
from feddyn.data.datasets.decode import Decoder
from feddyn.data.datasets.files import File


@dataclass(frozen=True)
class Form:
    """One way in which a source is published: its files, the folders they may lie in, and how to read them."""

    files: tuple[File, ...]
    folders: tuple[str, ...]
    decode: Decoder


@dataclass(frozen=True)
class Source:
    """A data set; its first form is the one that is downloaded. `mean` and `std` left out are the training set's."""

    about: str
    forms: tuple[Form, ...]
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    augment: bool = False


def _idx_files(base: Sequence[str], sums: Mapping[str, tuple[str, str]]) -> tuple[File, ...]:
    return tuple(File(name, md5, tuple(f"{url}{name}" for url in base)) for name, md5 in sums.items())


MNIST = _idx_files(
    ("http://yann.lecun.com/exdb/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"),
    {
        "train-images-idx3-ubyte.gz": ("f68b3c2dcbeaaa9fbdd348bbdeb94873", "6bbc9ace898e44ae57da46a324031adb"),
        "train-labels-idx1-ubyte.gz": ("d53e105ee54ea40749a09fcbcd1e9432", "a25bea736e30d166cdddb491f175f624"),
        "t10k-images-idx3-ubyte.gz": ("9fb629c4189551a2d022fa330f9573f3", "2646ac647ad5339dbf082846283269ea"),
        "t10k-labels-idx1-ubyte.gz": ("ec29112dd5afa0611ce80d1b7f02629c", "27ae3e4e09519cfbb04c329615203637"),
    },
)
FASHION = _idx_files(
    ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
    {
        "train-images-idx3-ubyte.gz": ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
        "train-labels-idx1-ubyte.gz": ("25c81989df183df01b3e8a0aad5dffbe", "9018921c3c673c538a1fc5bad174d6f9"),
        "t10k-images-idx3-ubyte.gz": ("bef4ecab320f06d8554ea6380940ec79", "8181f5470baa50b63fa0f6fddb340f0a"),
        "t10k-labels-idx1-ubyte.gz": ("bb300cfdad3c16e7a12a480ee83cd310", "15d484375f8d13e6eb1aabb0c3f46965"),
    },
)
SHAKESPEARE = (
    File("1994-01-100.zip", (), ("https://www.gutenberg.org/files/100/old/1994-01-100.zip",)),
    *(File(name, ()) for name in ("pg100_shakespeare.txt", "raw_data.txt", "100.txt")),
)
LEAF_COUNTS = (36, 1129, 4_226_158)
EMNIST = tuple(File(name, ()) for name in decode.EMNIST_NAMES)
EMNIST_ZIP = File(
    "gzip.zip", ("58c8d27c78d21e728a6bc7b3cc06412e",), ("https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",)
)
TORONTO = "https://www.cs.toronto.edu/~kriz/"
CIFAR10_BATCHES = (
    File("data_batch_1", ("c99cafc152244af753f735de768cd75f",)),
    File("data_batch_2", ("d4bba439e000b95fd0a9bffe97cbabec",)),
    File("data_batch_3", ("54ebc095f3ab1f0389bbae665268c751",)),
    File("data_batch_4", ("634d18415352ddfa80567beed471001a",)),
    File("data_batch_5", ("482c414d41f54cd18b22e5b47cb7c3cb",)),
    File("test_batch", ("40351d587109b95175f43aff81a1287e",)),
)
CIFAR100_BATCHES = (
    File("train", ("16019d7e3df5f24257cddd939b257f8d",)),
    File("test", ("f0ef6b0ae62326f3e7ffdfab6717acfc",)),
)


def _archive(name: str, md5: str) -> tuple[File, ...]:
    return (File(name, (md5,), (TORONTO + name,)),)


SOURCES: Mapping[str, Source] = {
    "mnist": Source(
        "handwritten digits, 60,000 + 10,000",
        (Form(MNIST, ("mnist", "MNIST/raw"), decode.idx),),
        (0.1307,),
        (0.3081,),
    ),
    "fashion-mnist": Source(
        "pieces of clothing, 60,000 + 10,000",
        (Form(FASHION, ("fashion-mnist", "FashionMNIST/raw", "/usr/share/datasets/fashion-mnist"), decode.idx),),
    ),
    "emnist-l": Source(
        "handwritten letters A to J, 48,000 + 8,000",
        (
            Form((EMNIST_ZIP,), ("emnist", "EMNIST/raw"), decode.emnist_zip),
            Form(EMNIST, ("emnist", "EMNIST/raw", "EMNIST/raw/gzip"), decode.emnist_idx),
            Form((File("emnist-letters.mat", ()),), ("emnist", "EMNIST/raw"), decode.emnist_matlab),
        ),
    ),
    "cifar10": Source(
        "colour images of 10 classes, 50,000 + 10,000",
        (
            Form(
                _archive("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"),
                ("cifar10", ""),
                decode.cifar_binary([f"data_batch_{i}.bin" for i in range(1, 6)], "test_batch.bin", 1),
            ),
            Form(CIFAR10_BATCHES, ("cifar10", "cifar-10-batches-py"), decode.cifar_batches(b"labels")),
            Form(
                _archive("cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a"),
                ("cifar10", ""),
                decode.cifar_python([file.name for file in CIFAR10_BATCHES], b"labels"),
            ),
        ),
        (0.491, 0.482, 0.447),
        (0.247, 0.243, 0.262),
        augment=True,
    ),
    "cifar100": Source(
        "colour images of 100 classes, 50,000 + 10,000",
        (
            Form(
                _archive("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"),
                ("cifar100", ""),
                decode.cifar_binary(["train.bin"], "test.bin", 2),
            ),
            Form(CIFAR100_BATCHES, ("cifar100", "cifar-100-python"), decode.cifar_batches(b"fine_labels")),
            Form(
                _archive("cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85"),
                ("cifar100", ""),
                decode.cifar_python([file.name for file in CIFAR100_BATCHES], b"fine_labels"),
            ),
        ),
        (0.5071, 0.4867, 0.4408),
        (0.2675, 0.2565, 0.2761),
        augment=True,
    ),
}
ABOUT = {
    **{name: source.about for name, source in SOURCES.items()},
    "shakespeare": "roles of 36 plays, 4,226,158 samples of 80 characters and the next",
}
