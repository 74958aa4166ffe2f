import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AccountRole,
  type Address,
  address,
  appendTransactionMessageInstructions,
  type Blockhash,
  compileTransaction,
  compressTransactionMessageUsingAddressLookupTables,
  createTransactionMessage,
  getCompiledTransactionMessageDecoder,
  getCompiledTransactionMessageEncoder,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit'
import { findAssociatedTokenPda } from '@solana-program/token'
import fc from 'fast-check'
import type { SvmInstruction } from '#kernel/task/signer.ts'
import { base58, fromBase58 } from './base58.ts'
import {
  computeLimit,
  computePrice,
  createTokenAccount,
  memo,
  transferLamports,
  transferTokens,
} from './instruction-builder.ts'
import { svmDecoder } from './instruction-decoder.ts'
import {
  accountKeysOf,
  compileMessage,
  decodeMessage,
  InvalidMessageError,
  joinTransaction,
  type LookupTable,
  splitTransaction,
} from './message.ts'
import { deriveTokenAccount } from './program-address.ts'
import { tokenProgram } from './program-ids.ts'

const addresses = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(base58)
const [payer, user, recipient, mint] = [1, 2, 3, 4].map((fill) => base58(new Uint8Array(32).fill(fill))) as [
  string,
  string,
  string,
  string,
]
const blockhash = base58(new Uint8Array(32).fill(9))

const pool = fc.uniqueArray(addresses, { minLength: 4, maxLength: 12 })
const plans = pool.chain((known) =>
  fc.record({
    feePayer: fc.constant(payer),
    blockhash: addresses,
    staticAddresses: fc.constant([]),
    tables: fc.constant([]),
    instructions: fc.array(
      fc.record({
        programId: fc.constantFrom(...known),
        accounts: fc.array(
          fc.record({
            address: fc.constantFrom(...known),
            isSigner: fc.constant(false),
            isWritable: fc.boolean(),
          }),
          { maxLength: 6 },
        ),
        data: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('hex')),
      }),
      { minLength: 1, maxLength: 4 },
    ),
  }),
)

const roleOf = ({ isSigner, isWritable }: { isSigner: boolean; isWritable: boolean }): AccountRole =>
  isSigner
    ? isWritable
      ? AccountRole.WRITABLE_SIGNER
      : AccountRole.READONLY_SIGNER
    : isWritable
      ? AccountRole.WRITABLE
      : AccountRole.READONLY

/** The same message by the public Solana library. */
function compiledByKit(
  instructions: readonly SvmInstruction[],
  feePayer: string,
  hash: string,
  tables: readonly LookupTable[] = [],
) {
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (draft) => setTransactionMessageFeePayer(address(feePayer), draft),
    (draft) =>
      setTransactionMessageLifetimeUsingBlockhash(
        { blockhash: hash as Blockhash, lastValidBlockHeight: 1n },
        draft,
      ),
    (draft) =>
      appendTransactionMessageInstructions(
        instructions.map(({ programId, accounts, data }) => ({
          programAddress: address(programId),
          accounts: accounts.map((account) => ({ address: address(account.address), role: roleOf(account) })),
          data: Buffer.from(data, 'hex'),
        })),
        draft,
      ),
    (draft) =>
      compressTransactionMessageUsingAddressLookupTables(
        draft,
        Object.fromEntries(tables.map((table) => [table.address, table.addresses as Address[]])) as Record<
          Address,
          Address[]
        >,
      ),
  )
  return compileTransaction(message)
}

/** The fields of a compiled message of version 0, as the public library names them. */
type CompiledMessage = {
  header: object
  staticAccounts: readonly string[]
  lifetimeToken: string
  instructions: readonly {
    programAddressIndex: number
    accountIndices?: readonly number[]
    data?: Uint8Array
  }[]
  addressTableLookups?: readonly unknown[]
}

const meaningOf = (message: Uint8Array) => {
  const compiled: object = getCompiledTransactionMessageDecoder().decode(message)
  const {
    header,
    staticAccounts,
    lifetimeToken,
    instructions,
    addressTableLookups = [],
  } = compiled as CompiledMessage
  const count = staticAccounts.length
  const nameAt = (index: number) => staticAccounts[index] ?? `looked up ${index - count}`
  return {
    header,
    lifetimeToken,
    statics: [...staticAccounts].sort(),
    feePayer: staticAccounts[0],
    instructions: instructions.map(
      ({ programAddressIndex, accountIndices = [], data = new Uint8Array() }) => ({
        program: nameAt(programAddressIndex),
        accounts: accountIndices.map(nameAt),
        data: Buffer.from(data).toString('hex'),
      }),
    ),
    lookups: addressTableLookups.length,
  }
}

test('a message means the same as that of the public Solana library', () => {
  fc.assert(
    fc.property(plans, (plan) => {
      // A program that is an account too is a signer or writable only by a mistake, which the library refuses.
      const programs = new Set(plan.instructions.map(({ programId }) => programId))
      const instructions = plan.instructions.map((each) => ({
        ...each,
        accounts: each.accounts.filter((account) => !programs.has(account.address)),
      }))
      const own = compileMessage({ ...plan, instructions })
      const theirs = compiledByKit(instructions, plan.feePayer, plan.blockhash).messageBytes
      assert.deepEqual(meaningOf(own), meaningOf(new Uint8Array(theirs)))
    }),
    { numRuns: 60 },
  )
})

const send = [
  computeLimit(200_000),
  computePrice(10n),
  createTokenAccount({ mint, tokenProgram }, recipient, payer),
  transferTokens({ mint, decimals: 6, tokenProgram }, user, recipient, 5n),
  transferLamports(user, recipient, 7n),
  memo('for you'),
]

test('the canonical bytes of a message survive the decoder and encoder of the public library', () => {
  const own = compileMessage({
    feePayer: payer,
    instructions: send,
    tables: [],
    staticAddresses: [],
    blockhash,
  })
  const encoder = getCompiledTransactionMessageEncoder()
  const again = encoder.encode(getCompiledTransactionMessageDecoder().decode(own))
  assert.deepEqual(Buffer.from(again).toString('hex'), Buffer.from(own).toString('hex'))
})

test('custody reads every instruction that the gateway makes', () => {
  const message = compileMessage({
    feePayer: payer,
    instructions: send,
    tables: [],
    staticAddresses: [],
    blockhash,
  })
  const decoded = decodeMessage(message)
  assert.deepEqual(decoded.signers, [payer, user])
  const [limit, price, created, tokens, lamports, note] = decoded.instructions.map(
    svmDecoder.decodeInstruction,
  )
  assert.deepEqual(
    [limit, price],
    [
      { name: 'compute_limit', units: 200_000n },
      { name: 'compute_price', microLamports: 10n },
    ],
  )
  const account = deriveTokenAccount(recipient, mint, tokenProgram)
  assert.deepEqual(created, {
    name: 'create_token_account',
    payer,
    account,
    owner: recipient,
    mint,
    tokenProgram,
  })
  assert.deepEqual(tokens, {
    name: 'transfer_tokens',
    tokenProgram,
    source: deriveTokenAccount(user, mint, tokenProgram),
    mint,
    to: account,
    authority: user,
    amountUnits: 5n,
  })
  assert.deepEqual(lamports, { name: 'transfer_lamports', from: user, to: recipient, lamports: 7n })
  assert.deepEqual(note, { name: 'memo', signers: [], text: 'for you' })
})

test('an account of a lookup table is not taken for an address that custody checks', () => {
  const to = deriveTokenAccount(recipient, mint, tokenProgram)
  const table = { address: base58(new Uint8Array(32).fill(8)), addresses: [to, mint, recipient] }
  const plan = { feePayer: payer, instructions: send.slice(3, 4), tables: [table], blockhash }
  const pinned = decodeMessage(compileMessage({ ...plan, staticAddresses: [to, mint] }))
  assert.equal(svmDecoder.decodeInstruction(pinned.instructions[0]!)?.name, 'transfer_tokens')
  const loose = decodeMessage(compileMessage({ ...plan, staticAddresses: [] }))
  assert.equal(loose.lookups.length, 1)
  assert.equal(svmDecoder.decodeInstruction(loose.instructions[0]!), undefined)
  assert.equal(
    meaningOf(compileMessage({ ...plan, staticAddresses: [] })).lookups,
    meaningOf(new Uint8Array(compiledByKit(plan.instructions, payer, blockhash, [table]).messageBytes))
      .lookups,
  )
})

test('a table makes a message smaller, and a message beyond a packet is refused', () => {
  const many = Array.from({ length: 40 }, (_, at) => base58(new Uint8Array(32).fill(20 + at)))
  const instruction = {
    programId: recipient,
    accounts: many.map((each) => ({ address: each, isSigner: false, isWritable: true })),
    data: '',
  }
  const plan = { feePayer: payer, instructions: [instruction], staticAddresses: [], blockhash }
  assert.throws(() => compileMessage({ ...plan, tables: [] }), { code: 'conflict' })
  const tables = [{ address: user, addresses: many }]
  const message = compileMessage({ ...plan, tables })
  assert.ok(message.length < 260)
  assert.deepEqual(decodeMessage(message).lookups[0]?.writable, [...many.keys()])
})

test('no bytes make the decoder do anything but decode or refuse', () => {
  const valid = compileMessage({
    feePayer: payer,
    instructions: send,
    tables: [],
    staticAddresses: [],
    blockhash,
  })
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 1_300 }),
      fc.nat(valid.length - 1),
      fc.nat(255),
      (noise, at, byte) => {
        const changed = Uint8Array.from(valid)
        changed[at] = byte
        for (const bytes of [noise, changed, valid.subarray(0, at)])
          try {
            decodeMessage(bytes).instructions.forEach(svmDecoder.decodeInstruction)
          } catch (error) {
            assert.ok(error instanceof InvalidMessageError, String(error))
          }
      },
    ),
  )
})

test('a transaction is its signatures and its message', () => {
  const signatures = [new Uint8Array(64).fill(1), new Uint8Array(64).fill(2)]
  const message = Uint8Array.of(128, 1, 2)
  const split = splitTransaction(joinTransaction(signatures, message))
  assert.deepEqual(
    [split.signatures.map((each) => [...each]), [...split.message]],
    [signatures.map((each) => [...each]), [...message]],
  )
})

test('base58 has one spelling, and token accounts are those of the public library', async () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
      assert.deepEqual([...(fromBase58(base58(bytes), 32) ?? [])], [...bytes])
      assert.equal(fromBase58(`1${base58(bytes)}`, 32), undefined)
    }),
  )
  for (const owner of [payer, user, recipient]) {
    const [expected] = await findAssociatedTokenPda({
      owner: address(owner),
      mint: address(mint),
      tokenProgram: address(tokenProgram),
    })
    assert.equal(deriveTokenAccount(owner, mint, tokenProgram), expected)
  }
})

test('the accounts of a transaction are read in either form, whatever follows them', () => {
  fc.assert(
    fc.property(plans, fc.integer({ min: 1, max: 3 }), (plan, signers) => {
      const message = compileMessage(plan)
      const { staticAddresses } = decodeMessage(message)
      const signatures = Array.from({ length: signers }, () => new Uint8Array(64))
      const versioned = joinTransaction(signatures, message)
      assert.deepEqual(accountKeysOf(versioned), staticAddresses)
      // The older form has no byte of its version.
      const legacy = joinTransaction(signatures, message.subarray(1))
      assert.deepEqual(accountKeysOf(legacy), staticAddresses)
      assert.deepEqual(accountKeysOf(versioned.subarray(0, signers * 64 + 10)), [])
    }),
  )
})
