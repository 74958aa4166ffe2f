/** Deposits at Relay's program: what the adapter and the section make of an answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chainList } from '#features/chains/chain-list.ts'
import { safeRoute } from '#features/swap/route/route-checks.ts'
import type { SwapTerms } from '#features/swap/route/terms.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { SolanaChainRow } from '#kernel/money/chains.ts'
import type { RouteRequest } from '#kernel/money/swap-provider.ts'
import type { SvmInstruction } from '#kernel/task/signer.ts'
import { foreignNames } from '#upstreams/relay/chain-and-currency-names.ts'
import { routeOf } from '#upstreams/relay/quote.ts'
import { base58 } from '#upstreams/solana/base58.ts'
import { depositAtDepository, memo, transferLamports } from '#upstreams/solana/instruction-builder.ts'
import { svmDecoder } from '#upstreams/solana/instruction-decoder.ts'
import { deriveTokenAccount } from '#upstreams/solana/program-address.ts'
import {
  depositoryProgram,
  systemProgram,
  token2022Program,
  tokenProgram,
} from '#upstreams/solana/program-ids.ts'
import { depositoryState, depositoryVault } from '#world/solana/depository-accounts.ts'

const key = (fill: number) => base58(new Uint8Array(32).fill(fill))
const [own, stranger, table, friend] = [1, 4, 5, 6].map(key) as [string, string, string, string]
const solanaId = '7565164'
const rows = chainList({ urls: { [solanaId]: 'http://solana', '8453': 'http://base' }, finality: 'local' })
const row = rows.find((each): each is SolanaChainRow => each.family === 'solana')!
const base = rows.find(({ id }) => id === '8453')!
const depository = row.depository!
const usdc = row.tokens[0]!
const bonk = row.tokens[1]!
const names = foreignNames(rows)

const requestId = `0x${'0d'.repeat(32)}`
const orderId = `0x${'0e'.repeat(32)}`
const units = 31_000_000n
const evmUser = `0x${'a1'.repeat(20)}`
const relaySolana = 792703809

test('the program and its accounts are the published ones, and derive from each other', () => {
  assert.deepEqual(depository, {
    program: depositoryProgram,
    state: depositoryState,
    vault: depositoryVault,
  })
})

/** As the service answers. */
type Key = { pubkey: string; isSigner: boolean; isWritable: boolean }
type Instruction = { programId: string; keys: Key[]; data: string }
const amountText = (amount: bigint) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(amount)
  return bytes.toString('hex')
}
const account = (pubkey: string, isSigner = false, isWritable = false): Key => ({
  pubkey,
  isSigner,
  isWritable,
})
type Shape = { amount?: bigint; id?: string; mint?: string; program?: string }
const native = ({ amount = units, id = orderId }: Shape = {}): Instruction => ({
  programId: '99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2',
  keys: [
    account('Dodg2HifwU8rmaVVyMyUZDGTRbqAJTyVYxXPwcbNpBKc'),
    account(own, true, true),
    account(own),
    account('7uTT8Xi5RWXzy7h9XL244GRgEycDYDhLjr3ZyNdXi8pZ', false, true),
    account(systemProgram),
  ],
  data: `0d9e0ddf5fd51c06${amountText(amount)}${id.slice(2)}`,
})
const tokens = ({
  amount = units,
  id = orderId,
  mint = usdc.address,
  program = tokenProgram,
}: Shape = {}): Instruction => ({
  programId: '99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2',
  keys: [
    account('Dodg2HifwU8rmaVVyMyUZDGTRbqAJTyVYxXPwcbNpBKc'),
    account(own, true, true),
    account(own),
    account('7uTT8Xi5RWXzy7h9XL244GRgEycDYDhLjr3ZyNdXi8pZ'),
    account(mint),
    account(deriveTokenAccount(own, mint, program), false, true),
    account(deriveTokenAccount('7uTT8Xi5RWXzy7h9XL244GRgEycDYDhLjr3ZyNdXi8pZ', mint, program), false, true),
    account(program),
    account('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL'),
    account(systemProgram),
  ],
  data: `0b9c60da27a3b413${amountText(amount)}${id.slice(2)}`,
})
const amountOf = (chainId: number, address: string, amount: bigint) => ({
  currency: { chainId, address },
  amount: String(amount),
})
const answer = (
  token: string,
  instructions: Instruction[],
  order: unknown = undefined,
  tables = [table],
) => ({
  steps: [
    {
      id: 'deposit',
      kind: 'transaction',
      requestId,
      items: [{ status: 'incomplete', data: { instructions, addressLookupTableAddresses: tables } }],
    },
  ],
  fees: {},
  details: {
    sender: own,
    recipient: evmUser,
    currencyIn: amountOf(relaySolana, token, units),
    currencyOut: { ...amountOf(8453, base.usdc, 30_000_000n), minimumAmount: '29700000' },
  },
  protocol: order ?? {
    v2: {
      orderId,
      hubType: 'onchain',
      paymentDetails: {
        chainId: 'solana',
        depository: depositoryProgram,
        currency: token,
        amount: String(units),
      },
    },
  },
})

const termsOf = (isNative: boolean): SwapTerms => ({
  userId: 'user',
  origin: { chain: row, token: isNative ? row.native : usdc, isNative },
  destination: { chain: base, token: base.tokens[0]!, isNative: false },
  account: own,
  recipient: evmUser,
  amountInUnits: units,
  valueInMicros: units,
  slippageBps: 100,
  maxImpactBps: 2_500,
  deadlineSeconds: 300,
  maxFeeBps: null,
})
const requestOf = ({ origin }: SwapTerms): RouteRequest => ({
  user: own,
  recipient: evmUser,
  origin: { chainId: solanaId, token: origin.token.address },
  destination: { chainId: '8453', token: base.usdc },
  amountInUnits: units,
  slippageBps: 100,
  ttlSeconds: 300,
  urgency: 'trade',
})
const rules = {
  calls: { decode: () => undefined, approve: assert.fail, withMinimum: assert.fail },
  svmRules: { decoder: svmDecoder, recipients: [friend], deposit: depositAtDepository },
}
/** Through the adapter and the section. */
const take = (
  instructions: Instruction[],
  { isNative = false, order = undefined as unknown, tables = [table] } = {},
) => {
  const terms = termsOf(isNative)
  const token = terms.origin.token.address
  const route = routeOf(answer(token, instructions, order, tables), {
    request: requestOf(terms),
    names,
    now: new Date(0),
  })
  const safe = safeRoute(rules, route, terms)
  assert.ok(safe.family === 'solana')
  return safe
}

const asSent = ({ programId, keys, data }: Instruction): SvmInstruction => ({
  programId,
  accounts: keys.map(({ pubkey, ...role }) => ({ address: pubkey, ...role })),
  data,
})

for (const [name, isNative, instruction] of [
  ['SOL', true, native()],
  ['a token', false, tokens()],
] as const)
  test(`a deposit of ${name} is made anew, to the same bytes, without the table of the answer`, () => {
    const safe = take([instruction], { isNative })
    assert.deepEqual(safe, {
      family: 'solana',
      instructions: [asSent(instruction)],
      lookupTables: [],
      spends: [
        { token: isNative ? row.native.address : usdc.address, amountUnits: units, to: depository.vault },
      ],
      target: depository.vault,
    })
    // Neither its fees nor an unused right of an account are taken over.
    const [first, ...rest] = instruction.keys
    const generous = { ...instruction, keys: [{ ...first!, isWritable: true }, ...rest] }
    const limit = { programId: 'ComputeBudget111111111111111111111111111111', keys: [], data: '02ffffff00' }
    assert.deepEqual(take([limit, generous], { isNative }), safe)
    assert.deepEqual(take([instruction], { isNative, tables: [] }), safe)
  })

const at = (instruction: Instruction, index: number, change: Partial<Key>): Instruction => ({
  ...instruction,
  keys: instruction.keys.map((each, place) => (place === index ? { ...each, ...change } : each)),
})
const other = (instruction: Instruction, index: number, pubkey = stranger) =>
  at(instruction, index, { pubkey })
const foreign = deriveTokenAccount(stranger, usdc.address, tokenProgram)
const stolen: Instruction = {
  programId: systemProgram,
  keys: [account(own, true, true), account(stranger, false, true)],
  data: '020000000100000000000000',
}
const orderOf = (change: object) => ({
  v2: { orderId, paymentDetails: { currency: usdc.address, amount: String(units) }, ...change },
})

type Hostile = [string, Instruction[], { isNative?: boolean; order?: unknown }?]
const hostile: Hostile[] = [
  ...[false, true].flatMap((isNative): Hostile[] => {
    const [kind, make] = isNative ? ['SOL', native] : ['a token', tokens]
    const good = make()
    const last = good.keys.length - 1
    return [
      [`${kind} at another program`, [{ ...good, programId: stranger }], { isNative }],
      [`${kind} with other settings`, [other(good, 0)], { isNative }],
      [`${kind} of another sender`, [other(good, 1)], { isNative }],
      [`${kind} that counts for another depositor`, [other(good, 2)], { isNative }],
      [`${kind} to another vault`, [other(good, 3)], { isNative }],
      [`${kind} by another system program`, [other(good, last)], { isNative }],
      [`${kind} that another account signs`, [at(other(good, 2), 2, { isSigner: true })], { isNative }],
      [`${kind}, a unit more`, [make({ amount: units + 1n })], { isNative }],
      [`${kind}, a unit less`, [make({ amount: units - 1n })], { isNative }],
      [`${kind} for another order`, [make({ id: `0x${'0f'.repeat(32)}` })], { isNative }],
      [`${kind} that names the request`, [make({ id: requestId })], { isNative }],
      [`${kind} twice`, [good, good], { isNative }],
      [`${kind} beside a transfer`, [good, stolen], { isNative }],
      [`${kind} behind a transfer`, [stolen, good], { isNative }],
      [`${kind} beside an unknown program`, [good, { ...stolen, programId: stranger }], { isNative }],
      [
        `${kind} beside a memo`,
        [good, { programId: 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr', keys: [], data: '00' }],
        { isNative },
      ],
      [`${kind} with an account more`, [{ ...good, keys: [...good.keys, account(stranger)] }], { isNative }],
      [`${kind} with an account less`, [{ ...good, keys: good.keys.slice(0, -1) }], { isNative }],
      [`${kind} with a byte more`, [{ ...good, data: `${good.data}00` }], { isNative }],
      [`${kind} with a byte less`, [{ ...good, data: good.data.slice(0, -2) }], { isNative }],
      [`${kind} by another instruction`, [{ ...good, data: `00${good.data.slice(2)}` }], { isNative }],
    ]
  }),
  ['another mint', [tokens({ mint: bonk.address })]],
  ['another mint between the right accounts', [other(tokens(), 4, bonk.address)]],
  ['tokens of another account', [other(tokens(), 5, foreign)]],
  ['tokens into another account', [other(tokens(), 6, foreign)]],
  ['tokens that stay', [other(tokens(), 6, deriveTokenAccount(own, usdc.address, tokenProgram))]],
  ['another token program', [other(tokens(), 7)]],
  ['accounts of another token program', [other(tokens(), 7, token2022Program)]],
  ['another program for token accounts', [other(tokens(), 8)]],
  ['SOL in place of a token', [native()]],
  ['a token in place of SOL', [tokens()], { isNative: true }],
  ['no deposit', []],
  [
    'an order for more',
    [tokens()],
    { order: orderOf({ paymentDetails: { currency: usdc.address, amount: String(units + 1n) } }) },
  ],
  [
    'an order for another token',
    [tokens()],
    { order: orderOf({ paymentDetails: { currency: bonk.address, amount: String(units) } }) },
  ],
  ['an order of another id', [tokens()], { order: orderOf({ orderId: `0x${'0a'.repeat(32)}` }) }],
  ['no id', [tokens()], { order: orderOf({ orderId: '0x' }) }],
]
for (const [name, instructions, options] of hostile)
  test(`a quote with a deposit of ${name} is refused`, () =>
    assert.throws(
      () => take(instructions, options),
      (fault) => fault instanceof Fault && fault.code === 'upstream_changed',
    ))

test('nothing of the provider but its order is in what is signed', () => {
  const [signed] = take([tokens()]).instructions
  const known = [own, depository.state, depository.vault, usdc.address].flatMap((each) => [
    each,
    deriveTokenAccount(each, usdc.address, tokenProgram),
  ])
  const programs = [tokenProgram, systemProgram, 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL']
  assert.ok(signed?.accounts.every(({ address }) => [...known, ...programs].includes(address)))
  assert.equal(signed?.programId, depositoryProgram)
})

test('a transfer to a configured account with its memo is still one way to deposit', () => {
  const transfer = transferLamports(own, friend, units)
  const instructions = [transfer, memo(requestId)].map(({ programId, accounts, data }) => ({
    programId,
    keys: accounts.map(({ address, ...role }) => ({ pubkey: address, ...role })),
    data,
  }))
  const terms = termsOf(true)
  const { protocol: _, ...body } = answer(row.native.address, instructions)
  const route = routeOf(body, { request: requestOf(terms), names, now: new Date(0) })
  const safe = safeRoute(rules, route, terms)
  assert.deepEqual(
    [safe.target, safe.family === 'solana' && safe.instructions],
    [friend, [transfer, memo(requestId)]],
  )
  // With a deposit beside it, neither counts.
  assert.throws(() => take([...instructions, native()], { isNative: true }), Fault)
})
