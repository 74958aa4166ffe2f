/** The file of a program as the loader of Solana reads it: version 0 of the bytecode, in a shared object of 64 bits. */

export type SyscallSite = { name: string; instruction: number }
type Section = { name: string; type: number; flags: number; bytes: Uint8Array; link?: number; entry?: number }

const headerBytes = 64
const programHeaderBytes = 56
const sectionHeaderBytes = 64
const symbolBytes = 24
const instructionBytes = 8
const relocationBytes = 16
const dynamicEntryBytes = 16

const machineBpf = 247
const sharedObject = 3
const relocationOfCall = 10
const globalSymbol = 0x10
const sectionTypes = { null: 0, code: 1, strings: 3, dynamic: 6, relocations: 9, symbols: 11 }
const dynamicTags = {
  strings: 5,
  symbols: 6,
  stringsSize: 10,
  symbolSize: 11,
  rel: 17,
  relSize: 18,
  relEntry: 19,
}

const align = (offset: number): number => Math.ceil(offset / 8) * 8

/** Texts one behind the other, each with its end; and where each begins. */
const stringTable = (texts: readonly string[]): { bytes: Uint8Array; at: (text: string) => number } => {
  const offsets = new Map<string, number>()
  let bytes = Buffer.alloc(1)
  for (const text of texts) {
    offsets.set(text, bytes.length)
    bytes = Buffer.concat([bytes, Buffer.from(text), Buffer.alloc(1)])
  }
  return { bytes, at: (text) => offsets.get(text) ?? 0 }
}

const words = (...values: (number | bigint)[]): Buffer => {
  const bytes = Buffer.alloc(values.length * 8)
  for (const [index, value] of values.entries()) bytes.writeBigUInt64LE(BigInt(value), index * 8)
  return bytes
}

/** Undefined functions: the loader resolves them by the hash of their name. */
const symbolsOf = (names: readonly string[], at: (name: string) => number): Buffer => {
  const bytes = Buffer.alloc((names.length + 1) * symbolBytes)
  for (const [index, name] of names.entries()) {
    const start = (index + 1) * symbolBytes
    bytes.writeUInt32LE(at(name), start)
    bytes.writeUInt8(globalSymbol, start + 4)
  }
  return bytes
}

const programHeader = (type: number, flags: number, start: number, length: number): Buffer => {
  const types = Buffer.alloc(8)
  types.writeUInt32LE(type, 0)
  types.writeUInt32LE(flags, 4)
  return Buffer.concat([types, words(start, start, start, length, length, instructionBytes)])
}

const fileHeader = (entry: number, sectionsAt: number, counts: { programs: number; sections: number }) => {
  const bytes = Buffer.alloc(headerBytes)
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1])
  bytes.writeUInt16LE(sharedObject, 16)
  bytes.writeUInt16LE(machineBpf, 18)
  bytes.writeUInt32LE(1, 20)
  bytes.set(words(entry, headerBytes, sectionsAt), 24)
  bytes.writeUInt16LE(headerBytes, 52)
  bytes.writeUInt16LE(programHeaderBytes, 54)
  bytes.writeUInt16LE(counts.programs, 56)
  bytes.writeUInt16LE(sectionHeaderBytes, 58)
  bytes.writeUInt16LE(counts.sections, 60)
  bytes.writeUInt16LE(counts.sections - 1, 62)
  return bytes
}

const flagsOf = { alloc: 2, execute: 4 }
const segmentTypes = { load: 1, dynamic: 2 }

/** Every address is the offset in the file. The entry is the first instruction. */
export const programFile = (code: Uint8Array, sites: readonly SyscallSite[]): Uint8Array => {
  const names = [...new Set(sites.map(({ name }) => name))]
  const strings = stringTable(names)
  const symbols = symbolsOf(names, strings.at)
  const codeAt = align(headerBytes + 3 * programHeaderBytes)
  const symbolsAt = align(codeAt + code.length)
  const stringsAt = align(symbolsAt + symbols.length)
  const relocationsAt = align(stringsAt + strings.bytes.length)
  const relocations = Buffer.concat(
    sites.map(({ name, instruction }) =>
      words(
        codeAt + instruction * instructionBytes,
        (BigInt(names.indexOf(name) + 1) << 32n) | BigInt(relocationOfCall),
      ),
    ),
  )
  const dynamicAt = align(relocationsAt + relocations.length)
  const entries = [
    [dynamicTags.rel, relocationsAt],
    [dynamicTags.relSize, relocations.length],
    [dynamicTags.relEntry, relocationBytes],
    [dynamicTags.symbols, symbolsAt],
    [dynamicTags.symbolSize, symbolBytes],
    [dynamicTags.strings, stringsAt],
    [dynamicTags.stringsSize, strings.bytes.length],
    [0, 0],
  ]
  const dynamic = words(...entries.flat())
  const { alloc, execute } = flagsOf
  const sections: Section[] = [
    { name: '.text', type: sectionTypes.code, flags: alloc | execute, bytes: code },
    {
      name: '.dynsym',
      type: sectionTypes.symbols,
      flags: alloc,
      bytes: symbols,
      link: 3,
      entry: symbolBytes,
    },
    { name: '.dynstr', type: sectionTypes.strings, flags: alloc, bytes: strings.bytes },
    {
      name: '.rel.dyn',
      type: sectionTypes.relocations,
      flags: alloc,
      bytes: relocations,
      link: 2,
      entry: relocationBytes,
    },
    {
      name: '.dynamic',
      type: sectionTypes.dynamic,
      flags: alloc,
      bytes: dynamic,
      link: 3,
      entry: dynamicEntryBytes,
    },
  ]
  const sectionNames = stringTable([...sections.map(({ name }) => name), '.shstrtab'])
  sections.push({ name: '.shstrtab', type: sectionTypes.strings, flags: 0, bytes: sectionNames.bytes })
  const end = dynamicAt + dynamic.length
  const sectionsAt = align(end + sectionNames.bytes.length)
  const file = Buffer.alloc(sectionsAt + (sections.length + 1) * sectionHeaderBytes)
  file.set(fileHeader(codeAt, sectionsAt, { programs: 3, sections: sections.length + 1 }), 0)
  file.set(
    Buffer.concat([
      programHeader(segmentTypes.load, 5, codeAt, code.length),
      programHeader(segmentTypes.load, 4, symbolsAt, end - symbolsAt),
      programHeader(segmentTypes.dynamic, 4, dynamicAt, dynamic.length),
    ]),
    headerBytes,
  )
  let start = codeAt
  for (const [index, { name, type, flags, bytes, link = 0, entry = 0 }] of sections.entries()) {
    file.set(bytes, start)
    const header = Buffer.alloc(sectionHeaderBytes)
    header.writeUInt32LE(sectionNames.at(name), 0)
    header.writeUInt32LE(type, 4)
    header.set(words(flags, flags === 0 ? 0 : start, start, bytes.length), 8)
    header.writeUInt32LE(link, 40)
    header.set(words(instructionBytes, entry), 48)
    file.set(header, sectionsAt + (index + 1) * sectionHeaderBytes)
    start = align(start + bytes.length)
  }
  return file
}
