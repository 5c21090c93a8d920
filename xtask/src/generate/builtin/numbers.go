// SPDX-License-Identifier: Apache-2.0

// Prints, for every type of the stable kinds, the number of each field in protocol buffers. The numbers stand in tags of
// the Go types and nowhere else.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"

	definitions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	services "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// A field without a name of its own holds the fields of another type; it is printed as "+" and the name of that type.
type fields map[string]int

func main() {
	for _, add := range []func() error{
		func() error { return definitions.AddToScheme(scheme.Scheme) },
		func() error { return services.AddToScheme(scheme.Scheme) },
	} {
		if err := add(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	types := map[string]fields{}
	for kind, goType := range scheme.Scheme.AllKnownTypes() {
		if !strings.ContainsAny(kind.Version, "ab_") {
			walk(goType, types)
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	if err := encoder.Encode(types); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func walk(goType reflect.Type, types map[string]fields) {
	switch goType.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
		walk(goType.Elem(), types)
		return
	case reflect.Struct:
	default:
		return
	}
	name := definition(goType)
	if _, seen := types[name]; seen || goType.Name() == "" {
		return
	}
	numbers := fields{}
	types[name] = numbers
	for i := range goType.NumField() {
		field := goType.Field(i)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) > 1 {
			number, err := strconv.Atoi(tag[1])
			if err != nil {
				continue
			}
			key := strings.Split(field.Tag.Get("json"), ",")[0]
			if key == "" {
				key = "+" + definition(field.Type)
			}
			numbers[key] = number
		}
		walk(field.Type, types)
	}
	if len(numbers) == 0 {
		delete(types, name)
	}
}

// The name under which OpenAPI has a type: io.k8s.api.core.v1.Pod.
func definition(goType reflect.Type) string {
	for goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	host, path, _ := strings.Cut(goType.PkgPath(), "/")
	parts := strings.Split(host, ".")
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(path, "/", ".") + "." + goType.Name()
}
