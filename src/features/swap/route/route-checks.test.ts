import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { Chain, EvmChainRow } from '#kernel/money/chains.ts'
import type { ProposedRoute, RouteCall } from '#kernel/money/swap-provider.ts'
import type { DecodedCall, EvmCall } from '#kernel/task/signer.ts'
import { safeRoute } from './route-checks.ts'
import type { SwapTerms } from './terms.ts'

const own = `0x${'a1'.repeat(20)}`
const stranger = `0x${'bb'.repeat(20)}`
const router = `0x${'d1'.repeat(20)}`
const depository = `0x${'d2'.repeat(20)}`
const weth = `0x${'ee'.repeat(19)}01`
const coin = '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE'
const requestId = `0x${'0d'.repeat(32)}`
const token = (symbol: string, address: string) => ({ symbol, name: symbol, decimals: 6, address })
const usdc = token('USDC', `0x${'c5'.repeat(20)}`)
const dai = token('DAI', `0x${'c6'.repeat(20)}`)
const row = {
  id: '8453',
  family: 'evm',
  native: { ...token('ETH', coin), priceId: 'x' },
  displayName: 'Base',
  gas: { callsMax: 12_000_000n },
  swaps: { wrapped: weth, routers: [router], depository, relayRouters: [] },
} as unknown as EvmChainRow
const other = { ...row, id: '1' } as Chain
const terms: SwapTerms = {
  userId: 'user',
  origin: { chain: row, token: usdc, isNative: false },
  destination: { chain: row, token: dai, isNative: false },
  account: own,
  recipient: own,
  amountInUnits: 100n,
  valueInMicros: 100n,
  slippageBps: 100,
  maxImpactBps: 2_500,
  deadlineSeconds: 300,
  maxFeeBps: null,
}
const bridgeTerms: SwapTerms = { ...terms, destination: { ...terms.destination, chain: other } }

/** Calls are decoded from this list, by their data. */
const decodings = new Map<string, DecodedCall>()
let count = 0
const callOf = (
  kind: RouteCall['kind'],
  to: string,
  read: DecodedCall | undefined,
  value = 0n,
): RouteCall => {
  const data = `0x${(count++).toString(16).padStart(8, '0')}`
  if (read) decodings.set(data, read)
  return { kind, to, value, data }
}
type Of<Name extends DecodedCall['name']> = Extract<DecodedCall, { name: Name }>
const swap = (change: Partial<Of<'swap'>> = {}, to = router, value = 0n) =>
  callOf(
    'swap',
    to,
    {
      name: 'swap',
      router: to,
      tokenIn: usdc.address,
      tokenOut: dai.address,
      path: [usdc.address, dai.address],
      amountInUnits: 100n,
      amountOutMinUnits: 90n,
      recipient: own,
      ...change,
    },
    value,
  )
const deposit = (change: Partial<Of<'bridge'>> = {}, to = depository, value = 0n) =>
  callOf(
    'deposit',
    to,
    {
      name: 'bridge',
      depository: to,
      depositor: own,
      token: usdc.address,
      amountUnits: 100n,
      requestId,
      ...change,
    },
    value,
  )
const approve = (change: Partial<Of<'approve'>> = {}, value = 0n) =>
  callOf(
    'approve',
    usdc.address,
    { name: 'approve', token: usdc.address, spender: router, amountUnits: 100n, ...change },
    value,
  )

const routeOf = (calls: RouteCall[], change: Partial<ProposedRoute> = {}): ProposedRoute => ({
  provider: 'relay',
  providerRequestId: `0x${'0f'.repeat(32)}`,
  depositId: requestId,
  origin: { chainId: '8453', token: usdc.address },
  destination: { chainId: '8453', token: dai.address },
  recipient: own,
  amountInUnits: 100n,
  amountOutUnits: 95n,
  amountOutMinUnits: 90n,
  fees: [],
  legs: [],
  priceImpactBps: 0,
  etaSeconds: 1,
  expiresAt: new Date(0),
  steps: { family: 'evm', chainId: '8453', calls, gas: null },
  settledBy: 'receipt',
  ...change,
})
const bridgeRoute = (calls: RouteCall[], change: Partial<ProposedRoute> = {}) =>
  routeOf(calls, { destination: { chainId: '1', token: dai.address }, settledBy: 'status', ...change })

const rules = {
  calls: {
    decode: ({ data }: EvmCall) => decodings.get(data),
    withMinimum: (call: EvmCall) => call,
    approve: (to: string, spender: string, amountUnits: bigint): EvmCall => ({
      to,
      value: 0n,
      data: `approve ${spender} ${amountUnits}`,
    }),
  },
  svmRules: undefined,
}

test('the approval is our own, of exactly the amount, to the contract that is called', () => {
  const call = swap()
  const safe = safeRoute(rules, routeOf([approve(), call]), terms)
  assert.equal(safe.family, 'evm')
  assert.deepEqual(safe.family === 'evm' && safe.calls, [
    { to: usdc.address, value: 0n, data: `approve ${router} 100` },
    { to: router, value: 0n, data: call.data },
  ])
  assert.deepEqual(safe.spends, [{ token: usdc.address, amountUnits: 100n, spender: router }])
  // Of tokens that take no change of an allowance the solver resets it first, and it may ask for more than it takes.
  for (const asked of [0n, 101n])
    assert.deepEqual(safeRoute(rules, routeOf([approve({ amountUnits: asked }), call]), terms), safe)
  // The solver omits its approval where an earlier one is left over.
  assert.deepEqual(safeRoute(rules, routeOf([call]), terms), safe)
  assert.equal(safeRoute(rules, bridgeRoute([deposit()]), bridgeTerms).target, depository)
})

const hostile: [string, ProposedRoute, SwapTerms?][] = [
  ['a foreign target', routeOf([swap({}, stranger)])],
  ['a swap for another recipient', routeOf([swap({ recipient: stranger })])],
  ['another recipient of the route', routeOf([swap()], { recipient: stranger })],
  ['an approval for another contract', routeOf([approve({ spender: stranger }), swap()])],
  ['an approval of another token', routeOf([approve({ token: dai.address }), swap()])],
  ['an approval with a value', routeOf([approve({}, 1n), swap()])],
  ['an extra call', routeOf([swap(), swap()])],
  ['no call', routeOf([approve()])],
  ['a call that cannot be read', routeOf([callOf('swap', router, undefined)])],
  [
    'a transfer in place of a swap',
    routeOf([
      callOf('swap', usdc.address, {
        name: 'transfer',
        token: usdc.address,
        to: stranger,
        amountUnits: 100n,
      }),
    ]),
  ],
  ['an inflated value', routeOf([swap({}, router, 1n)])],
  ['a lower minimum in the calldata', routeOf([swap({ amountOutMinUnits: 89n })])],
  ['no minimum', routeOf([swap({ amountOutMinUnits: 0n })], { amountOutMinUnits: 0n })],
  ['a larger amount in the calldata', routeOf([swap({ amountInUnits: 101n })])],
  ['another amount', routeOf([swap()], { amountInUnits: 99n })],
  ['another token in', routeOf([swap({ tokenIn: dai.address })])],
  ['another token out', routeOf([swap({ tokenOut: weth })])],
  ['native output for a token', routeOf([swap({ tokenOut: null })])],
  [
    'another chain',
    routeOf([swap()], { steps: { family: 'evm', chainId: '1', calls: [swap()], gas: null } }),
  ],
  ['a deposit for a swap', routeOf([deposit()])],
  ['a settlement that no receipt proves', routeOf([swap()], { settledBy: 'status' })],
  ['a swap for a deposit', bridgeRoute([swap()]), bridgeTerms],
  ['a deposit at a foreign contract', bridgeRoute([deposit({}, stranger)]), bridgeTerms],
  ['a deposit of another account', bridgeRoute([deposit({ depositor: stranger })]), bridgeTerms],
  [
    'a deposit for another request',
    bridgeRoute([deposit({ requestId: `0x${'0f'.repeat(32)}` })]),
    bridgeTerms,
  ],
  ['a deposit of another amount', bridgeRoute([deposit({ amountUnits: 101n })]), bridgeTerms],
  ['a deposit of another token', bridgeRoute([deposit({ token: dai.address })]), bridgeTerms],
  ['a deposit of the native coin', bridgeRoute([deposit({ token: null }, depository, 100n)]), bridgeTerms],
]
for (const [name, route, given = terms] of hostile)
  test(`a quote with ${name} is refused`, () =>
    assert.throws(
      () => safeRoute(rules, route, given),
      (fault) => fault instanceof Fault && fault.extras.reason === 'quote_refused',
    ))

test('a route that names more gas than one transaction may use is refused', () => {
  const route = (gas: bigint | null) =>
    routeOf([swap()], { steps: { family: 'evm', chainId: '8453', calls: [swap()], gas } })
  for (const gas of [null, row.gas.callsMax]) assert.ok(safeRoute(rules, route(gas), terms))
  assert.throws(() => safeRoute(rules, route(row.gas.callsMax + 1n), terms), {
    code: 'no_route',
    message: 'The route needs more gas than one transaction on Base may use',
  })
})
