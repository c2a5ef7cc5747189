package wire

const PartOrder = 3 // of the exp-Golomb codes of what describes a part
