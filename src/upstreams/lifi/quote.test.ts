import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { RouteRequest } from '#kernel/money/swap-provider.ts'
import { routeOf } from './quote.ts'
import { statusOf } from './status.ts'

const native = '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE'
const zero = `0x${'00'.repeat(20)}`
const coin = { symbol: 'ETH', name: 'Ether', decimals: 18, address: native, priceId: 'x' }
const rows = new Map([
  ['8453', { id: '8453', family: 'evm' as const, native: coin }],
  ['42161', { id: '42161', family: 'evm' as const, native: coin }],
])
const user = `0x${'a1'.repeat(20)}`
const usdc = `0x${'c5'.repeat(20)}`
const usdcThere = `0x${'c6'.repeat(20)}`
const transactionId = `0x${'0d'.repeat(32)}`
const now = new Date('2026-01-01T00:00:00Z')
const request: RouteRequest = {
  user,
  recipient: user,
  origin: { chainId: '8453', token: usdc },
  destination: { chainId: '42161', token: usdcThere },
  amountInUnits: 1_000_000n,
  slippageBps: 100,
  ttlSeconds: 300,
  urgency: 'trade',
}
type Change = Record<string, unknown>
const token = (chainId: number, address: string) => ({ chainId, address })
const fee = (change: Change = {}) => ({ amount: '700', token: token(8453, usdc), included: true, ...change })
const answer = ({ action, estimate, transactionRequest, ...rest }: Record<string, Change> = {}) => ({
  tool: 'across',
  transactionId,
  action: {
    fromChainId: 8453,
    toChainId: 42161,
    fromToken: token(8453, usdc),
    toToken: token(42161, usdcThere),
    fromAddress: user,
    toAddress: user.toUpperCase().replace('0X', '0x'),
    ...action,
  },
  estimate: {
    fromAmount: '1000000',
    toAmount: '10000',
    toAmountMin: '9900',
    feeCosts: [fee()],
    executionDuration: 2.5,
    fromAmountUSD: '100',
    toAmountUSD: '99.5',
    ...estimate,
  },
  transactionRequest: {
    from: user,
    to: zero,
    data: '0x1234',
    value: '0x0',
    chainId: 8453,
    gasLimit: '0x5208',
    ...transactionRequest,
  },
  ...rest,
})
const codeOf = (body: unknown): unknown => {
  try {
    routeOf(body, { request, rows, now })
  } catch (fault) {
    assert.ok(fault instanceof Fault, String(fault))
    return fault.code
  }
  return undefined
}

test('a quote is read in our names', () => {
  const route = routeOf(answer(), { request, rows, now })
  assert.deepEqual(route.fees, [{ type: 'bridge', ...request.origin, amountUnits: 700n, isIncluded: true }])
  assert.deepEqual(
    [
      route.providerRequestId,
      route.settledBy,
      route.priceImpactBps,
      route.etaSeconds,
      route.amountOutMinUnits,
    ],
    [transactionId, 'status', 50, 3, 9_900n],
  )
  assert.deepEqual(route.steps, {
    family: 'evm',
    chainId: '8453',
    calls: [{ kind: 'deposit', to: zero, value: 0n, data: '0x1234' }],
    gas: 21_000n,
  })
})

const hostile: [string, unknown][] = [
  ['another amount', answer({ estimate: { fromAmount: '1000001' } })],
  ['another token in', answer({ action: { fromToken: token(8453, usdcThere) } })],
  ['another token out', answer({ action: { toToken: token(42161, usdc) } })],
  ['another chain', answer({ action: { toChainId: 1 } })],
  ['another sender', answer({ action: { fromAddress: zero } })],
  ['another recipient', answer({ action: { toAddress: zero } })],
  ['a minimum below the slippage', answer({ estimate: { toAmountMin: '9898' } })],
  ['a minimum above its output', answer({ estimate: { toAmountMin: '10001' } })],
  ['a call on another chain', answer({ transactionRequest: { chainId: 1 } })],
  ['a call of another sender', answer({ transactionRequest: { from: zero } })],
  ['a decimal value', answer({ transactionRequest: { value: '1' } })],
  ['odd calldata', answer({ transactionRequest: { data: '0x123' } })],
  ['much calldata', answer({ transactionRequest: { data: `0x${'00'.repeat(20_000)}` } })],
  ['no transaction id', { ...answer(), transactionId: '0x12' }],
  ['many fees', answer({ estimate: { feeCosts: Array.from({ length: 17 }, () => fee()) } })],
  ['no object', []],
]
for (const [name, body] of hostile)
  test(`a quote with ${name} is refused`, () => assert.equal(codeOf(body), 'upstream_changed'))

test('a fee in another token is shown in it, and a minimum may be a unit low by rounding', () => {
  const fees = [zero, usdcThere].map((address) => fee({ token: token(42161, address) }))
  const foreign = fee({ token: token(56, usdc) })
  const estimate = { feeCosts: [...fees, foreign], toAmountMin: '9899' }
  const route = routeOf(answer({ estimate }), { request, rows, now })
  assert.deepEqual(
    route.fees.map((each) => [each.chainId, each.token, each.amountUnits]),
    [
      ['42161', native, 700n],
      ['42161', usdcThere, 700n],
    ],
  )
  assert.equal(route.amountOutMinUnits, 9_899n)
})

test('a fee beside the input means that there is no route', () => {
  assert.equal(codeOf(answer({ estimate: { feeCosts: [fee({ included: false })] } })), 'no_route')
})

const asked = {
  providerRequestId: transactionId,
  originChainId: '8453',
  destinationChainId: '42161',
  originTxHash: null,
}
const stateOf = (status: string, substatus?: string) =>
  statusOf({ status, substatus, receiving: { chainId: 42161, txHash: transactionId } }, asked, rows)

test('a status is over only with a known word, and a payment elsewhere is none', () => {
  assert.equal(stateOf('DONE', 'COMPLETED').state, 'success')
  assert.deepEqual(stateOf('DONE', 'COMPLETED').destinationTxs, [{ chainId: '42161', txHash: transactionId }])
  assert.deepEqual(
    [stateOf('DONE', 'REFUNDED').state, stateOf('DONE', 'REFUNDED').destinationTxs],
    ['refunded', [{ chainId: '42161', txHash: transactionId }]],
  )
  const elsewhere = { chainId: 10, txHash: transactionId }
  const refund = statusOf({ status: 'DONE', substatus: 'REFUNDED', receiving: elsewhere }, asked, rows)
  assert.deepEqual(refund.destinationTxs, [])
  const back = { chainId: 8453, txHash: transactionId }
  assert.deepEqual(
    statusOf({ status: 'DONE', substatus: 'REFUNDED', receiving: back }, asked, rows).destinationTxs,
    [back].map(({ txHash }) => ({ chainId: '8453', txHash })),
  )
  assert.deepEqual(
    [stateOf('FAILED', 'SLIPPAGE_EXCEEDED').state, stateOf('FAILED', 'EXPIRED').reason],
    ['failed', 'TTL_EXPIRED'],
  )
  for (const word of ['PENDING', 'ODD']) assert.equal(stateOf(word, 'REFUND_IN_PROGRESS').state, 'settling')
  assert.deepEqual([stateOf('NOT_FOUND').state, stateOf('INVALID').state], ['waiting', 'unknown'])
})
