import { addressBytes, sha256 } from './keys.ts'
import type { Assembler, Register } from './sbpf-assembler.ts'

/** What the program of the depository is made of: its input, its stack frame, calls of other programs, and its event. */

/** The first 8 bytes by which Anchor identifies instructions, events and accounts. */
export const discriminator = (name: string): Buffer => sha256(name).subarray(0, 8)

/** As the loader lays out an account: a marker, rights, address, owner, coins, length and data, and room to grow. */
export const account = {
  signer: 1,
  writable: 2,
  executable: 3,
  address: 8,
  owner: 40,
  lamports: 72,
  length: 80,
  data: 88,
}
const growthBytes = 10_240
const notDuplicate = 0xff
const accountsMax = 16

export const dataBytes = 48
export const argument = { amount: 8, id: 16 }
const tokenAmountAt = 64
export const mintDecimalsAt = 44

/** As Anchor and the program number them. */
export const failures = {
  unknownInstruction: 101,
  wrongArguments: 102,
  notWritable: 2000,
  wrongTokenAccount: 2009,
  wrongSeeds: 2006,
  tooFewAccounts: 3005,
  wrongProgram: 3008,
  noSigner: 3010,
  wrongVaultTokenAccount: 6009,
}
type Failure = keyof typeof failures

/** Places in the stack frame, counted from its end. */
export const frame = {
  accounts: -128,
  input: -136,
  /** 32 bytes. */
  address: -192,
  bump: -200,
  /** 16 bytes for each of three. */
  seeds: -256,
  /** 121 bytes. */
  event: -384,
  slice: -400,
  instruction: -440,
  callData: -480,
  /** 16 bytes for each of six. */
  metas: -576,
  /** 56 bytes for each of six. */
  infos: -912,
  text: -960,
}
const metaBytes = 16
const infoBytes = 56

type Meta = { index: number; signer?: boolean; writable?: boolean }

export const accountAt = (asm: Assembler, to: Register, index: number): void =>
  asm.load('double', to, 10, frame.accounts + index * 8)
const frameAddress = (asm: Assembler, to: Register, offset: number): void => {
  asm.copy(to, 10)
  asm.add(to, offset)
}

/** Compares 32 bytes in registers 2 and 3; the other ones are kept. */
export const requireAddress = (asm: Assembler, index: number, address: string, failure: Failure): void => {
  const bytes = Buffer.from(addressBytes(address))
  accountAt(asm, 4, index)
  for (let at = 0; at < 32; at += 8) {
    asm.setWide(2, bytes.readBigUInt64LE(at))
    asm.load('double', 3, 4, account.address + at)
    asm.ifUnequal(2, 3, failure)
  }
}

const copyBytes = (asm: Assembler, count: number, to: { base: Register; at: number }, from: typeof to) => {
  for (let at = 0; at < count; at += 8) {
    asm.load('double', 2, from.base, from.at + at)
    asm.store('double', to.base, to.at + at, 2)
  }
}

/** Finds the accounts, of which each but the last decides where the next one begins. */
export const readInput = (asm: Assembler): void => {
  asm.copy(6, 1)
  asm.load('double', 7, 6, 0)
  asm.add(6, 8)
  asm.ifAbove(7, accountsMax, 'wrongArguments')
  asm.set(8, 0)
  frameAddress(asm, 9, frame.accounts)
  asm.label('account')
  asm.ifEqual(8, 7, 'accounts read')
  asm.load('byte', 2, 6, 0)
  asm.ifNotNumber(2, notDuplicate, 'duplicate')
  asm.store('double', 9, 0, 6)
  asm.load('double', 3, 6, account.length)
  asm.add(6, account.data + growthBytes)
  asm.addRegister(6, 3)
  asm.add(6, 7)
  asm.and(6, -8)
  asm.add(6, 8)
  asm.jump('next account')
  asm.label('duplicate')
  asm.shiftLeft(2, 3)
  frameAddress(asm, 3, frame.accounts)
  asm.addRegister(3, 2)
  asm.load('double', 3, 3, 0)
  asm.store('double', 9, 0, 3)
  asm.add(6, 8)
  asm.label('next account')
  asm.add(8, 1)
  asm.add(9, 8)
  asm.jump('account')
  asm.label('accounts read')
  asm.load('double', 2, 6, 0)
  asm.add(6, 8)
  asm.ifBelow(2, 8, 'unknownInstruction')
  asm.store('double', 10, frame.input, 6)
}

export const log = (asm: Assembler, text: string): void => {
  const bytes = Buffer.alloc(Math.ceil(text.length / 8) * 8)
  bytes.write(text)
  for (let at = 0; at < bytes.length; at += 8) {
    asm.setWide(2, bytes.readBigUInt64LE(at))
    asm.store('double', 10, frame.text + at, 2)
  }
  frameAddress(asm, 1, frame.text)
  asm.set(2, text.length)
  asm.call('sol_log_')
}

/** Calls another program with the accounts as they are; `data` is in the frame already. */
export const invoke = (asm: Assembler, program: number, metas: readonly Meta[], dataLength: number): void => {
  for (const [place, { index, signer = false, writable = false }] of metas.entries()) {
    const meta = frame.metas + place * metaBytes
    const info = frame.infos + place * infoBytes
    accountAt(asm, 3, index)
    for (const [at, field] of [
      [meta, account.address],
      [info, account.address],
      [info + 8, account.lamports],
      [info + 24, account.data],
      [info + 32, account.owner],
    ] as const) {
      asm.copy(2, 3)
      asm.add(2, field)
      asm.store('double', 10, at, 2)
    }
    asm.storeNumber('double', 10, meta + 8, (writable ? 1 : 0) + (signer ? 0x100 : 0))
    asm.load('double', 2, 3, account.length)
    asm.store('double', 10, info + 16, 2)
    asm.storeNumber('double', 10, info + 40, 0)
    asm.storeNumber('double', 10, info + 48, 0)
    for (const [at, field] of [
      [0, account.signer],
      [1, account.writable],
      [2, account.executable],
    ] as const) {
      asm.load('byte', 2, 3, field)
      asm.store('byte', 10, info + 48 + at, 2)
    }
  }
  accountAt(asm, 2, program)
  asm.add(2, account.address)
  asm.store('double', 10, frame.instruction, 2)
  frameAddress(asm, 2, frame.metas)
  asm.store('double', 10, frame.instruction + 8, 2)
  asm.storeNumber('double', 10, frame.instruction + 16, metas.length)
  frameAddress(asm, 2, frame.callData)
  asm.store('double', 10, frame.instruction + 24, 2)
  asm.storeNumber('double', 10, frame.instruction + 32, dataLength)
  frameAddress(asm, 1, frame.instruction)
  frameAddress(asm, 2, frame.infos)
  asm.set(3, metas.length)
  asm.set(4, 0)
  asm.set(5, 0)
  asm.call('sol_invoke_signed_c')
}

/** Whether an account is the token account of an owner: by the seeds of the program for token accounts. */
export const requireTokenAccount = (
  asm: Assembler,
  of: { index: number; owner: number; mint: number; program: number; accountProgram: number },
  failure: Failure,
): void => {
  for (const [place, index] of [of.owner, of.program, of.mint].entries()) {
    accountAt(asm, 2, index)
    asm.add(2, account.address)
    asm.store('double', 10, frame.seeds + place * 16, 2)
    asm.storeNumber('double', 10, frame.seeds + place * 16 + 8, 32)
  }
  frameAddress(asm, 1, frame.seeds)
  asm.set(2, 3)
  accountAt(asm, 3, of.accountProgram)
  asm.add(3, account.address)
  frameAddress(asm, 4, frame.address)
  frameAddress(asm, 5, frame.bump)
  asm.call('sol_try_find_program_address')
  asm.ifNotNumber(0, 0, failure)
  accountAt(asm, 4, of.index)
  for (let at = 0; at < 32; at += 8) {
    asm.load('double', 2, 10, frame.address + at)
    asm.load('double', 3, 4, account.address + at)
    asm.ifUnequal(2, 3, failure)
  }
}

export const tokenAmount = (asm: Assembler, to: Register, index: number): void => {
  accountAt(asm, 4, index)
  asm.load('double', to, 4, account.data + tokenAmountAt)
}

/** `depositor`, an optional token, the amount in the register 9, and the id of the deposit. */
export const logEvent = (
  asm: Assembler,
  { depositor, mint }: { depositor: number; mint: number | undefined },
) => {
  asm.setWide(2, discriminator('event:DepositEvent').readBigUInt64LE(0))
  asm.store('double', 10, frame.event, 2)
  accountAt(asm, 3, depositor)
  copyBytes(asm, 32, { base: 10, at: frame.event + 8 }, { base: 3, at: account.address })
  asm.storeNumber('byte', 10, frame.event + 40, mint === undefined ? 0 : 1)
  let end = 41
  if (mint !== undefined) {
    accountAt(asm, 3, mint)
    copyBytes(asm, 32, { base: 10, at: frame.event + end }, { base: 3, at: account.address })
    end += 32
  }
  asm.store('double', 10, frame.event + end, 9)
  asm.load('double', 3, 10, frame.input)
  copyBytes(asm, 32, { base: 10, at: frame.event + end + 8 }, { base: 3, at: argument.id })
  frameAddress(asm, 2, frame.event)
  asm.store('double', 10, frame.slice, 2)
  asm.storeNumber('double', 10, frame.slice + 8, end + 40)
  frameAddress(asm, 1, frame.slice)
  asm.set(2, 1)
  asm.call('sol_log_data')
}

export const requireRight = (
  asm: Assembler,
  index: number,
  right: 'signer' | 'writable',
  failure: Failure,
) => {
  accountAt(asm, 4, index)
  asm.load('byte', 2, 4, account[right])
  asm.ifNumber(2, 0, failure)
}
