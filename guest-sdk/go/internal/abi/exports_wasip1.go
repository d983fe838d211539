package abi

import "unsafe"

// memoryResult is `result<list<content>, failure>`. Its two cases overlap; a list is in the field
// of the failure's message.
type memoryResult struct {
	isFailure uint8
	failure   memoryFailure
}

//go:wasmexport cofferdam:plugin/tools@0.1.0#list-tools
func listTools() unsafe.Pointer {
	// The linker drops data that is never read.
	if adapterMemory.mark[0] == 0 {
		panic("the memory for the adapter of WASI was written over")
	}
	resume()
	var keep pins
	definitions := List()
	memory := make([]memoryDefinition, len(definitions))
	for i, definition := range definitions {
		memory[i] = keep.definition(definition)
	}
	list := lower(&keep, memory)
	return handOver(keep, unsafe.Pointer(&list))
}

//go:wasmexport cabi_post_cofferdam:plugin/tools@0.1.0#list-tools
func listToolsDone(unsafe.Pointer) {
	returned = nil
}

//go:wasmexport cofferdam:plugin/tools@0.1.0#call-tool
func callTool(nameAddress, nameLength, argumentsAddress, argumentsLength uint32) unsafe.Pointer {
	resume()
	name := span{nameAddress, nameLength}.text()
	arguments := span{argumentsAddress, argumentsLength}.text()
	release()
	contents, failure := Serve(name, arguments)
	var keep pins
	result := new(memoryResult)
	if failure != nil {
		result.isFailure = 1
		result.failure = keep.failure(failure)
		return handOver(keep, unsafe.Pointer(result))
	}
	memory := make([]memoryContent, len(contents))
	for i, content := range contents {
		memory[i] = keep.content(content)
	}
	result.failure.message = lower(&keep, memory)
	return handOver(keep, unsafe.Pointer(result))
}

//go:wasmexport cabi_post_cofferdam:plugin/tools@0.1.0#call-tool
func callToolDone(unsafe.Pointer) {
	returned = nil
}

func handOver(keep pins, result unsafe.Pointer) unsafe.Pointer {
	returned = append(keep, result)
	return result
}
