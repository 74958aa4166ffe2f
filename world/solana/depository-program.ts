import { depositoryState, depositoryVault } from './depository-accounts.ts'
import {
  account,
  accountAt,
  argument,
  dataBytes,
  discriminator,
  failures,
  frame,
  invoke,
  log,
  logEvent,
  mintDecimalsAt,
  readInput,
  requireAddress,
  requireRight,
  requireTokenAccount,
  tokenAmount,
} from './depository-parts.ts'
import { addressBytes } from './keys.ts'
import { associatedTokenProgram, systemProgram, token2022Program, tokenProgram } from './programs.ts'
import { type Assembler, createAssembler } from './sbpf-assembler.ts'

/**
 * The two deposits of Relay's depository, with its accounts, arguments, refusals and event. Our own program: transfers
 * out of the vault are left out, so that what is deposited stays there.
 */

/** What both deposits begin with: settings, sender, depositor and vault, in this order. */
const requireParties = (asm: Assembler, count: number): void => {
  asm.load('double', 3, 10, frame.input)
  asm.load('double', 2, 3, -8)
  asm.ifBelow(2, dataBytes, 'wrongArguments')
  asm.ifBelow(7, count, 'tooFewAccounts')
  requireAddress(asm, 0, depositoryState, 'wrongSeeds')
  requireRight(asm, 1, 'signer', 'noSigner')
  requireRight(asm, 1, 'writable', 'notWritable')
  requireAddress(asm, 3, depositoryVault, 'wrongSeeds')
}

/** Settings, sender, depositor, vault, system program. */
const depositNative = (asm: Assembler): void => {
  log(asm, 'Instruction: DepositNative')
  requireParties(asm, 5)
  requireRight(asm, 3, 'writable', 'notWritable')
  requireAddress(asm, 4, systemProgram, 'wrongProgram')
  asm.load('double', 3, 10, frame.input)
  asm.load('double', 9, 3, argument.amount)
  asm.storeNumber('word', 10, frame.callData, 2)
  asm.store('double', 10, frame.callData + 4, 9)
  invoke(
    asm,
    4,
    [
      { index: 1, signer: true, writable: true },
      { index: 3, writable: true },
    ],
    12,
  )
  logEvent(asm, { depositor: 2, mint: undefined })
}

/** Settings, sender, depositor, vault, mint, its two token accounts, and the three programs. */
const depositToken = (asm: Assembler): void => {
  log(asm, 'Instruction: DepositToken')
  requireParties(asm, 10)
  requireRight(asm, 5, 'writable', 'notWritable')
  requireRight(asm, 6, 'writable', 'notWritable')
  requireAddress(asm, 8, associatedTokenProgram, 'wrongProgram')
  requireAddress(asm, 9, systemProgram, 'wrongProgram')
  accountAt(asm, 4, 7)
  const isToken = asm.newLabel('token program')
  const bytes = (address: string) => Buffer.from(addressBytes(address)).readBigUInt64LE(8)
  asm.load('double', 3, 4, account.address + 8)
  for (const program of [tokenProgram, token2022Program]) {
    asm.setWide(2, bytes(program))
    asm.ifEqual(2, 3, isToken)
  }
  asm.jump('wrongProgram')
  asm.label(isToken)
  const of = { mint: 4, program: 7, accountProgram: 8 }
  requireTokenAccount(asm, { ...of, index: 5, owner: 1 }, 'wrongTokenAccount')
  requireTokenAccount(asm, { ...of, index: 6, owner: 3 }, 'wrongVaultTokenAccount')
  const exists = asm.newLabel('vault has an account')
  accountAt(asm, 4, 6)
  asm.load('double', 2, 4, account.length)
  asm.ifNotNumber(2, 0, exists)
  asm.storeNumber('byte', 10, frame.callData, 0)
  const created = [1, 6, 3, 4, 9, 7].map((index, place) => ({
    index,
    signer: place === 0,
    writable: place < 2,
  }))
  invoke(asm, 8, created, 1)
  asm.label(exists)
  tokenAmount(asm, 8, 6)
  asm.storeNumber('byte', 10, frame.callData, 12)
  asm.load('double', 3, 10, frame.input)
  asm.load('double', 2, 3, argument.amount)
  asm.store('double', 10, frame.callData + 1, 2)
  accountAt(asm, 3, 4)
  asm.load('byte', 2, 3, account.data + mintDecimalsAt)
  asm.store('byte', 10, frame.callData + 9, 2)
  const transfer = [{ index: 5, writable: true }, { index: 4 }, { index: 6, writable: true }]
  invoke(asm, 7, [...transfer, { index: 1, signer: true }], 10)
  // A transfer fee stays in the account, outside of its amount.
  tokenAmount(asm, 9, 6)
  asm.subtractRegister(9, 8)
  logEvent(asm, { depositor: 2, mint: 4 })
}

/** The program as a file for the loader of Solana. */
export const assembleDepository = (): Uint8Array => {
  const asm = createAssembler()
  readInput(asm)
  asm.load('double', 3, 6, 0)
  const deposits = { deposit_native: depositNative, deposit_token: depositToken }
  for (const name of Object.keys(deposits)) {
    asm.setWide(2, discriminator(`global:${name}`).readBigUInt64LE(0))
    asm.ifEqual(2, 3, name)
  }
  asm.jump('unknownInstruction')
  for (const [name, write] of Object.entries(deposits)) {
    asm.label(name)
    write(asm)
    asm.set(0, 0)
    asm.exit()
  }
  for (const [name, code] of Object.entries(failures)) {
    asm.label(name)
    asm.set(0, code)
    asm.exit()
  }
  return asm.file()
}
