import { programFile, type SyscallSite } from './sbpf-elf.ts'

/** Writes programs for Solana, one instruction at a time: nothing here needs a compiler of another language. */

/** A result and arguments of calls are in 0 to 5, 6 to 9 survive calls, and 10 is the end of the stack frame. */
export type Register = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10
export type Width = 'byte' | 'word' | 'double'
type Syscall = 'sol_log_' | 'sol_log_data' | 'sol_invoke_signed_c' | 'sol_try_find_program_address'

const instructionBytes = 8
const opcodes = {
  loadWide: 0x18,
  load: { byte: 0x71, word: 0x61, double: 0x79 },
  store: { byte: 0x73, word: 0x63, double: 0x7b },
  storeImmediate: { byte: 0x72, word: 0x62, double: 0x7a },
  addImmediate: 0x07,
  add: 0x0f,
  subtract: 0x1f,
  andImmediate: 0x57,
  shiftLeftImmediate: 0x67,
  setImmediate: 0xb7,
  set: 0xbf,
  jump: 0x05,
  jumpEqual: 0x1d,
  jumpEqualImmediate: 0x15,
  jumpUnequal: 0x5d,
  jumpUnequalImmediate: 0x55,
  jumpAboveImmediate: 0x25,
  jumpBelowImmediate: 0xa5,
  call: 0x85,
  exit: 0x95,
}

type Fields = { to?: number; from?: number; offset?: number; immediate?: number }

export type Assembler = ReturnType<typeof createAssembler>

export const createAssembler = () => {
  const slots: Buffer[] = []
  const labels = new Map<string, number>()
  const jumps: { slot: number; label: string }[] = []
  const sites: SyscallSite[] = []
  let labelCount = 0

  const emit = (opcode: number, { to = 0, from = 0, offset = 0, immediate = 0 }: Fields = {}): void => {
    const bytes = Buffer.alloc(instructionBytes)
    bytes.writeUInt8(opcode, 0)
    bytes.writeUInt8((from << 4) | to, 1)
    bytes.writeInt16LE(offset, 2)
    bytes.writeInt32LE(immediate, 4)
    slots.push(bytes)
  }
  const emitJump = (opcode: number, label: string, fields: Fields = {}): void => {
    jumps.push({ slot: slots.length, label })
    emit(opcode, fields)
  }

  return {
    /** A name that no other label has. */
    newLabel: (hint: string): string => `${hint} ${labelCount++}`,
    label: (name: string): void => {
      labels.set(name, slots.length)
    },
    set: (to: Register, value: number): void => emit(opcodes.setImmediate, { to, immediate: value }),
    /** All 64 bits. */
    setWide: (to: Register, value: bigint): void => {
      const low = Number(BigInt.asIntN(32, value))
      const high = Number(BigInt.asIntN(32, value >> 32n))
      emit(opcodes.loadWide, { to, immediate: low })
      emit(0, { immediate: high })
    },
    copy: (to: Register, from: Register): void => emit(opcodes.set, { to, from }),
    add: (to: Register, value: number): void => emit(opcodes.addImmediate, { to, immediate: value }),
    addRegister: (to: Register, from: Register): void => emit(opcodes.add, { to, from }),
    subtractRegister: (to: Register, from: Register): void => emit(opcodes.subtract, { to, from }),
    and: (to: Register, value: number): void => emit(opcodes.andImmediate, { to, immediate: value }),
    shiftLeft: (to: Register, bits: number): void =>
      emit(opcodes.shiftLeftImmediate, { to, immediate: bits }),
    load: (width: Width, to: Register, from: Register, offset: number): void =>
      emit(opcodes.load[width], { to, from, offset }),
    store: (width: Width, to: Register, offset: number, from: Register): void =>
      emit(opcodes.store[width], { to, offset, from }),
    storeNumber: (width: Width, to: Register, offset: number, value: number): void =>
      emit(opcodes.storeImmediate[width], { to, offset, immediate: value }),
    jump: (label: string): void => emitJump(opcodes.jump, label),
    ifEqual: (a: Register, b: Register, label: string): void =>
      emitJump(opcodes.jumpEqual, label, { to: a, from: b }),
    ifUnequal: (a: Register, b: Register, label: string): void =>
      emitJump(opcodes.jumpUnequal, label, { to: a, from: b }),
    ifNumber: (a: Register, value: number, label: string): void =>
      emitJump(opcodes.jumpEqualImmediate, label, { to: a, immediate: value }),
    ifNotNumber: (a: Register, value: number, label: string): void =>
      emitJump(opcodes.jumpUnequalImmediate, label, { to: a, immediate: value }),
    ifAbove: (a: Register, value: number, label: string): void =>
      emitJump(opcodes.jumpAboveImmediate, label, { to: a, immediate: value }),
    ifBelow: (a: Register, value: number, label: string): void =>
      emitJump(opcodes.jumpBelowImmediate, label, { to: a, immediate: value }),
    call: (name: Syscall): void => {
      sites.push({ name, instruction: slots.length })
      emit(opcodes.call, { immediate: -1 })
    },
    exit: (): void => emit(opcodes.exit),
    /** The program as a file for the loader; the first instruction is its entry. */
    file: (): Uint8Array => {
      for (const { slot, label } of jumps) {
        const target = labels.get(label)
        if (target === undefined) throw new Error(`there is no label ${label}`)
        slots[slot]!.writeInt16LE(target - slot - 1, 2)
      }
      return programFile(Buffer.concat(slots), sites)
    },
  }
}
