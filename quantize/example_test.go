package quantize_test

import (
	"fmt"
	"math"

	"github.com/arche-replicate/arche-replicate/quantize"
)

// A coordinate becomes a code of 18 bits, which comes back at most half a step away.
func Example() {
	meters, err := quantize.NewFixed32(-1000, 1000, 0.01)
	if err != nil {
		panic(err) // the error names a range or step to choose instead
	}
	const x = float32(12.3456)
	code, inRange := meters.Encode(float64(x))
	back, valid := meters.Decode(code)
	fmt.Printf("%d bits: code %d %v, back %v %v\n", meters.Bits(), code, inRange, back, valid)
	fmt.Printf("off by %.4f, at most %.4f\n", math.Abs(back-float64(x)), meters.MaxError())
	// Output:
	// 18 bits: code 101235 true, back 12.35 true
	// off by 0.0044, at most 0.0050
}

func ExampleInt() {
	level, err := quantize.NewInt(25, 100, 1)
	if err != nil {
		panic(err)
	}
	code, ok := level.Encode(90)
	fmt.Println(level.Bits(), "bits, code", code, ok)
	code, ok = level.Encode(120)
	fmt.Println("clamped: code", code, ok)
	v, ok := level.Decode(code)
	fmt.Println(v, ok)
	_, ok = level.Decode(76)
	fmt.Println("forged:", ok)
	// Output:
	// 7 bits, code 65 true
	// clamped: code 75 false
	// 100 true
	// forged: false
}

func ExampleFixed() {
	position, err := quantize.NewFixed32(-1000, 1000, 0.01)
	if err != nil {
		panic(err)
	}
	code, _ := position.Encode(123.4567)
	v, _ := position.Decode(code)
	fmt.Println(position.Bits(), "bits, code", code, "is", v)
	_, err = quantize.NewFixed32(-1000, 1000, 0.00001)
	fmt.Println(err)
	// Output:
	// 18 bits, code 112346 is 123.46
	// quantize: step 1e-05 over the range -1000..1000 is finer than a float32 can hold: use 6.3e-05 or more, or a float64 field
}

func ExampleFloat() {
	speed, err := quantize.NewFloat32(0, 1e6, 1)
	if err != nil {
		panic(err)
	}
	fmt.Println(speed.Bits(), "bits")
	for _, v := range []float64{0.12345678, 123.45678, 987654.3} {
		code, _ := speed.Encode(v)
		decoded, _ := speed.Decode(code)
		fmt.Printf("%v is off by %.1g\n", v, math.Abs(decoded-v))
	}
	// Output:
	// 23 bits
	// 0.12345678 is off by 2e-06
	// 123.45678 is off by 7e-06
	// 987654.3 is off by 0.3
}

func ExampleAngle() {
	heading, err := quantize.NewAngle(360, 8)
	if err != nil {
		panic(err)
	}
	for _, v := range []float64{90, 270, -90, 3690} {
		code, _ := heading.Encode(v)
		decoded, _ := heading.Decode(code)
		fmt.Println(v, "has code", code, "and comes back as", decoded)
	}
	// Output:
	// 90 has code 64 and comes back as 90
	// 270 has code 192 and comes back as -90
	// -90 has code 192 and comes back as -90
	// 3690 has code 64 and comes back as 90
}

func ExampleUnitVector() {
	normal, err := quantize.NewUnitVector(8)
	if err != nil {
		panic(err)
	}
	u, v, _ := normal.Encode([3]float64{0, 3, 4})
	decoded, _ := normal.Decode(u, v)
	fmt.Printf("%d %d is %.3f\n", u, v, decoded)
	// Output: 126 180 is [0.000 0.600 0.800]
}

func ExampleQuat() {
	rotation, err := quantize.NewQuat(9)
	if err != nil {
		panic(err)
	}
	yaw := math.Pi / 6
	code, _ := rotation.Encode([4]float64{0, math.Sin(yaw / 2), 0, math.Cos(yaw / 2)})
	decoded, _ := rotation.Decode(code)
	fmt.Printf("%+v is %.4f\n", code, decoded)
	again, _ := rotation.Encode(decoded)
	fmt.Println(again == code)
	// Output:
	// {Largest:3 A:255 B:348 C:255} is [0.0000 0.2583 0.0000 0.9661]
	// true
}

func ExampleHalf() {
	var half quantize.Half
	code, _ := half.Encode(3.14159)
	v, _ := half.Decode(code)
	fmt.Printf("%#x is %v\n", code, v)
	// Output: 0x4248 is 3.140625
}
