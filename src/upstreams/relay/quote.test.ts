import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { RouteRequest } from '#kernel/money/swap-provider.ts'
import { foreignNames } from './chain-and-currency-names.ts'
import { routeOf } from './quote.ts'
import { statusOf, withReasons } from './status.ts'

const native = '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE'
const zero = '0x0000000000000000000000000000000000000000'
const sol = '11111111111111111111111111111111'
const coin = (address: string) => ({ symbol: 'X', name: 'X', decimals: 18, address, priceId: 'x' })
const names = foreignNames([
  { id: '8453', family: 'evm', native: coin(native) },
  { id: '1', family: 'evm', native: coin(native) },
  { id: '7565164', family: 'solana', native: coin(sol) },
])
const user = `0x${'a1'.repeat(20)}`
const usdc = `0x${'c5'.repeat(20)}`
const requestId = `0x${'0d'.repeat(32)}`
const now = new Date('2026-01-01T00:00:00Z')
const request: RouteRequest = {
  user,
  recipient: user,
  origin: { chainId: '8453', token: usdc },
  destination: { chainId: '1', token: native },
  amountInUnits: 1_000_000n,
  slippageBps: 100,
  ttlSeconds: 300,
  urgency: 'trade',
}

type Change = Record<string, unknown>
const amount = (chainId: number, address: string, units: string) => ({
  currency: { chainId, address },
  amount: units,
})
const call = (change: Change = {}) => ({
  from: user,
  to: `0x${'d0'.repeat(20)}`,
  data: '0x1234',
  value: '0',
  chainId: 8453,
  ...change,
})
const step = (data: unknown, change: Change = {}) => ({
  id: 'deposit',
  kind: 'transaction',
  requestId,
  items: [{ status: 'incomplete', data }],
  ...change,
})
const answer = ({ details, ...change }: Change & { details?: Change } = {}) => ({
  steps: [step(call())],
  fees: {
    relayer: amount(8453, usdc, '700'),
    relayerGas: amount(8453, usdc, '200'),
  },
  details: {
    sender: user,
    recipient: user.toUpperCase().replace('0X', '0x'),
    currencyIn: amount(8453, usdc, '1000000'),
    currencyOut: { ...amount(1, zero, '10000'), minimumAmount: '9900' },
    totalImpact: { percent: '-0.257' },
    timeEstimate: 3,
    route: { origin: { router: 'relay' } },
    ...details,
  },
  ...change,
})
const read = (body: unknown, change: Partial<RouteRequest> = {}) =>
  routeOf(body, { request: { ...request, ...change }, names, now })
const codeOf = (run: () => unknown): unknown => {
  try {
    return run()
  } catch (fault) {
    assert.ok(fault instanceof Fault, String(fault))
    return fault.code
  }
}

test('a quote is read in our names, and its fees sum up to what the solver takes', () => {
  const route = read(answer())
  assert.deepEqual(route.destination, { chainId: '1', token: native })
  assert.deepEqual(
    route.fees.map(({ type, token, amountUnits }) => [type, token, amountUnits]),
    [
      ['gas', usdc, 200n],
      ['bridge', usdc, 500n],
    ],
  )
  assert.equal(route.priceImpactBps, 25)
  assert.equal(route.providerRequestId, requestId)
  assert.equal(route.settledBy, 'status')
  assert.equal(route.expiresAt.toISOString(), '2026-01-01T00:05:00.000Z')
})

const paying = (change: Change) => ({
  v2: { orderId: `0x${'0f'.repeat(32)}`, paymentDetails: { currency: usdc, amount: '1000000', ...change } },
})

const hostile: [string, unknown][] = [
  ['an order for another amount', answer({ protocol: paying({ amount: '1000001' }) })],
  ['an order for no amount', answer({ protocol: paying({ amount: undefined }) })],
  ['an order for another token', answer({ protocol: paying({ currency: zero }) })],
  ['another amount', answer({ details: { currencyIn: amount(8453, usdc, '1000001') } })],
  ['another input token', answer({ details: { currencyIn: amount(8453, zero, '1000000') } })],
  [
    'another output chain',
    answer({ details: { currencyOut: { ...amount(8453, zero, '10000'), minimumAmount: '9900' } } }),
  ],
  [
    'a minimum below the slippage',
    answer({ details: { currencyOut: { ...amount(1, zero, '10000'), minimumAmount: '9898' } } }),
  ],
  [
    'a minimum above the output',
    answer({ details: { currencyOut: { ...amount(1, zero, '10000'), minimumAmount: '10001' } } }),
  ],
  ['no minimum', answer({ details: { currencyOut: amount(1, zero, '10000') } })],
  ['another recipient', answer({ details: { recipient: zero } })],
  ['another sender', answer({ details: { sender: zero } })],
  ['a call on another chain', answer({ steps: [step(call({ chainId: 1 }))] })],
  ['a call of another sender', answer({ steps: [step(call({ from: zero }))] })],
  ['a negative value', answer({ steps: [step(call({ value: '-1' }))] })],
  ['a value out of range', answer({ steps: [step(call({ value: '9'.repeat(78) }))] })],
  ['odd calldata', answer({ steps: [step(call({ data: '0x123' }))] })],
  ['much calldata', answer({ steps: [step(call({ data: `0x${'00'.repeat(20_000)}` }))] })],
  [
    'steps of two requests',
    answer({ steps: [step(call()), step(call(), { requestId: `0x${'0e'.repeat(32)}` })] }),
  ],
  ['no steps', answer({ steps: [] })],
  ['many steps', answer({ steps: Array.from({ length: 9 }, () => step(call())) })],
  ['no object', []],
]
for (const [name, body] of hostile)
  test(`a quote with ${name} is refused`, () =>
    assert.equal(
      codeOf(() => read(body)),
      'upstream_changed',
    ))

test('a deposit names the order of its quote, which has an id of its own, or the request where there is none', () => {
  const orderId = `0x${'0C'.repeat(32)}`
  const depositOf = (protocol: unknown) => read(answer({ protocol })).depositId
  assert.equal(depositOf({ v2: { orderId, hubType: 'onchain' } }), orderId.toLowerCase())
  assert.equal(depositOf({ orderId }), orderId.toLowerCase())
  for (const none of [undefined, null, {}, { v2: {} }, { v2: { orderId: null } }])
    assert.equal(depositOf(none), requestId)
  assert.equal(read(answer({ protocol: { v2: { orderId } } })).providerRequestId, requestId)
  assert.equal(
    codeOf(() => depositOf({ v2: { orderId: '0x12' } })),
    'upstream_changed',
  )
})

test('steps without items are skipped, and an approval has two names and needs no id', () => {
  const approval = step(call({ gas: null }), { id: 'approval', requestId: undefined })
  const nothing = { id: 'authorize', kind: 'signature', requestId: `0x${'0e'.repeat(32)}`, items: [] }
  const { steps, providerRequestId } = read(
    answer({ steps: [nothing, approval, step(call({ gas: 21064 }))] }),
  )
  assert.equal(providerRequestId, requestId)
  assert.ok(steps.family === 'evm')
  assert.deepEqual(
    steps.calls.map(({ kind }) => kind),
    ['approve', 'deposit'],
  )
  assert.equal(steps.gas, 21_064n)
  for (const unnamed of [[approval], [step(call(), { requestId: undefined })], [nothing]])
    assert.equal(
      codeOf(() => read(answer({ steps: unnamed }))),
      'upstream_changed',
    )
})

test('fees are shown, in their own tokens, and refuse no quote', () => {
  const fees = (relayer: unknown, relayerGas?: unknown) =>
    read(answer({ fees: { relayer, relayerGas } })).fees.map(({ type, chainId, token, amountUnits }) =>
      [type, chainId, token, amountUnits].join(' '),
    )
  assert.deepEqual(fees(amount(8453, zero, '7'), amount(8453, usdc, '2')), [`bridge 8453 ${native} 7`])
  assert.deepEqual(fees(amount(8453, usdc, '1'), amount(8453, usdc, '2')), [`bridge 8453 ${usdc} 1`])
  for (const unread of [amount(56, usdc, '7'), amount(8453, 'x', '7'), amount(8453, usdc, '-7'), 7, null])
    assert.deepEqual(fees(unread), [])
})

test('a minimum may be a unit below the slippage by rounding', () => {
  const out = { ...amount(1, zero, '10000'), minimumAmount: '9899' }
  assert.equal(read(answer({ details: { currencyOut: out } })).amountOutMinUnits, 9_899n)
})

test('a step that custody could not read means that there is no route', () => {
  assert.equal(
    codeOf(() => read(answer({ steps: [step(call(), { kind: 'signature' })] }))),
    'no_route',
  )
  assert.equal(
    codeOf(() => read(answer({ steps: [step(call(), { id: 'authorize1' })] }))),
    'no_route',
  )
})

test('a route from Solana is one transaction of instructions', () => {
  const mint = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'
  const data = {
    instructions: [
      { programId: mint, keys: [{ pubkey: mint, isSigner: true, isWritable: false }], data: '0a' },
    ],
    addressLookupTableAddresses: [mint],
  }
  const details = {
    sender: mint,
    currencyIn: amount(792703809, sol, '1000000'),
    currencyOut: { ...amount(8453, usdc, '10000'), minimumAmount: '9900' },
  }
  const change = {
    user: mint,
    origin: { chainId: '7565164', token: sol },
    destination: { chainId: '8453', token: usdc },
  }
  const route = read(answer({ steps: [step(data)], fees: {}, details }), change)
  assert.deepEqual(route.steps, {
    family: 'solana',
    chainId: '7565164',
    instructions: [
      { programId: mint, accounts: [{ address: mint, isSigner: true, isWritable: false }], data: '0a' },
    ],
    lookupTables: [mint],
  })
  const twice = answer({ steps: [step(data), step(data)], fees: {}, details })
  assert.equal(
    codeOf(() => read(twice, change)),
    'upstream_changed',
  )
})

const statusRequest = {
  providerRequestId: requestId,
  originChainId: '8453',
  destinationChainId: '7565164',
  originTxHash: null,
}
const status = (word: string, change: Change = {}) =>
  statusOf({ status: word, ...change }, { request: statusRequest, names })

test('a status that is not known is not an end, and hashes are those of their chain', () => {
  const words = [
    'waiting',
    'depositing',
    'pending',
    'delayed',
    'submitted',
    'success',
    'refund',
    'failure',
    'new',
    'refunded',
    'fallback',
  ]
  assert.deepEqual(
    words.map((word) => status(word).state),
    [
      'waiting',
      'settling',
      'settling',
      'settling',
      'settling',
      'success',
      'refunded',
      'failed',
      'settling',
      'refunded',
      'refunded',
    ],
  )
  const hash = `0x${'ab'.repeat(32)}`
  for (const word of ['success', 'refund'])
    assert.deepEqual(status(word, { txHashes: [hash] }).destinationTxs, [{ chainId: '8453', txHash: hash }])
  assert.deepEqual(status('submitted', { txHashes: [hash] }).destinationTxs, [])
})

test('the reason and the refund are those of the own request', () => {
  const hash = `0x${'ab'.repeat(32)}`
  const refunded = status('refund', { txHashes: [hash] })
  const entry = (id: string) => ({
    id,
    data: { failReason: 'SLIPPAGE', refundFailReason: null, refundCurrencyData: amount(8453, zero, '990') },
  })
  const reading = { request: statusRequest, names }
  const known = withReasons(refunded, { requests: [entry('0x00'), entry(requestId)] }, reading)
  assert.equal(known.reason, 'SLIPPAGE')
  assert.deepEqual(known.refund, { chainId: '8453', token: native, amountUnits: 990n, txHash: hash })
  assert.equal(withReasons(refunded, { requests: [entry('0x00')] }, reading).reason, null)
})

test('the status itself says why, without a key', () => {
  const failed = status('failure', {
    failReason: 'BLOCKED_WALLET',
    refundFailReason: 'MANUAL_REFUND_REQUIRED',
  })
  assert.deepEqual([failed.reason, failed.refundReason], ['BLOCKED_WALLET', 'MANUAL_REFUND_REQUIRED'])
  const none = { failReason: 'N/A', refundFailReason: 'N/A', details: 'why' }
  for (const word of ['success', 'refund'])
    assert.deepEqual([status(word, none).reason, status(word, none).refundReason], ['why', null])
  const reading = { request: statusRequest, names }
  const listed = { requests: [{ id: requestId, data: { failReason: null, refundFailReason: 'N/A' } }] }
  const known = withReasons(failed, listed, reading)
  assert.deepEqual([known.reason, known.refundReason], ['BLOCKED_WALLET', 'MANUAL_REFUND_REQUIRED'])
})

test('what was paid is looked for on both chains, and before the end on that of the fill', () => {
  const asked = { request: { ...statusRequest, destinationChainId: '1' }, names }
  const txHash = `0x${'ab'.repeat(32)}`
  const chainsOf = (word: string) =>
    statusOf({ status: word, txHashes: [txHash] }, asked).destinationTxs.map(({ chainId }) => chainId)
  for (const word of ['refund', 'success', 'failure']) assert.deepEqual(chainsOf(word), ['8453', '1'])
  assert.deepEqual(chainsOf('submitted'), ['1'])
})

test('of too many hashes the newest are read', () => {
  const hashes = Array.from({ length: 20 }, (_, at) => `0x${at.toString(16).padStart(64, '0')}`)
  const asked = { request: { ...statusRequest, destinationChainId: '1' }, names }
  assert.equal(
    statusOf({ status: 'success', txHashes: hashes }, asked).destinationTxs.at(-1)?.txHash,
    hashes.at(-1),
  )
})
