import type { SwapCalls } from '#features/swap/deps.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { type EvmChainRow, sameAddress } from '#kernel/money/chains.ts'
import type { ProposedRoute } from '#kernel/money/swap-provider.ts'
import type { DecodedCall, EvmCall, TokenSpend } from '#kernel/task/signer.ts'
import { type SafeSvmRoute, type SvmRouteRules, safeSvmRoute } from './svm-route-checks.ts'
import type { SwapTerms } from './terms.ts'

/** This module treats a proposed route as hostile until each of its calls is proven to be what was asked for. */

export type SafeEvmRoute = {
  family: 'evm'
  /** The one call of the route, preceded by an approval of exactly its amount, which the gateway writes itself. */
  calls: EvmCall[]
  spends: TokenSpend[]
  target: string
}
export type SafeRoute = SafeEvmRoute | SafeSvmRoute

const refuse = (what: string): Fault =>
  new Fault('upstream_changed', `The provider proposed ${what}; the quote is refused`, {
    extras: { reason: 'quote_refused' },
  })

function assert(holdsTrue: boolean, what: string): asserts holdsTrue {
  if (!holdsTrue) throw refuse(what)
}

type Checked = { route: ProposedRoute; terms: SwapTerms; call: EvmCall }
type CallOf<Name extends DecodedCall['name']> = Extract<DecodedCall, { name: Name }>

export type RouteRules = {
  calls: Pick<SwapCalls, 'decode' | 'approve' | 'withMinimum'>
  svmRules: SvmRouteRules | undefined
}

export function safeRoute(
  { calls, svmRules }: RouteRules,
  route: ProposedRoute,
  terms: SwapTerms,
): SafeRoute {
  assertTerms(route, terms)
  if (terms.origin.chain.family === 'evm') return safeEvmRoute(calls, route, terms)
  assert(svmRules !== undefined, 'steps on a chain that is not served')
  return safeSvmRoute(svmRules, route, terms)
}

function safeEvmRoute(calls: RouteRules['calls'], route: ProposedRoute, terms: SwapTerms): SafeEvmRoute {
  const { steps } = route
  const { chain, token, isNative } = terms.origin
  assert(
    chain.family === 'evm' && steps.family === 'evm' && steps.chainId === chain.id,
    'steps on another chain',
  )
  assertGas(steps.gas, chain, route)
  const [call, ...others] = steps.calls.filter(({ kind }) => kind !== 'approve')
  assert(call !== undefined && others.length === 0, 'not exactly one call')
  const { to, value, data } = call
  const plain = calls.withMinimum({ to, value, data }, minimumOf(route, terms))
  const read = calls.decode(plain)
  assert(read !== undefined, 'a call that cannot be read')
  const takesToken = assertCall(read, { route, terms, call: plain })
  for (const approval of steps.calls.filter(({ kind }) => kind === 'approve'))
    assertApproval(calls.decode(approval), approval, { route, terms, call: plain })
  const spend = { token: token.address, amountUnits: route.amountInUnits, spender: to }
  if (isNative) return { family: 'evm', calls: [plain], spends: takesToken ? [spend] : [], target: to }
  const approval = calls.approve(token.address, to, route.amountInUnits)
  return takesToken
    ? { family: 'evm', calls: [approval, plain], spends: [spend], target: to }
    : { family: 'evm', calls: [plain], spends: [], target: to }
}

function assertGas(gas: bigint | null, chain: EvmChainRow, { provider }: ProposedRoute): void {
  if (gas === null || gas <= chain.gas.callsMax) return
  const what = `The route needs more gas than one transaction on ${chain.displayName} may use`
  throw new Fault('no_route', what, { extras: { upstream: provider, reason: 'gas' } })
}

const minimumOf = ({ amountOutMinUnits }: ProposedRoute, { destination, recipient }: SwapTerms) => ({
  token: destination.isNative ? null : destination.token.address,
  recipient,
  units: amountOutMinUnits,
})

function assertTerms(route: ProposedRoute, terms: SwapTerms): void {
  const { origin, destination } = terms
  const isAt = (end: ProposedRoute['origin'], { chain, token }: SwapTerms['destination']) =>
    end.chainId === chain.id && sameAddress(chain, end.token, token.address)
  assert(isAt(route.origin, origin), 'another token in')
  assert(isAt(route.destination, destination), 'another token out')
  assert(sameAddress(destination.chain, route.recipient, terms.recipient), 'another recipient')
  assert(route.amountInUnits === terms.amountInUnits, 'another amount')
  assert(route.amountOutMinUnits > 0n, 'no minimum output')
  const isDirect = origin.chain.id === destination.chain.id && origin.chain.family === 'evm'
  assert(route.settledBy === (isDirect ? 'receipt' : 'status'), 'another kind of settlement')
}

/** Checks the call of a route; returns whether its contract takes the sold amount, by approval or by value. */
function assertCall(read: DecodedCall, checked: Checked): boolean {
  const { terms, route, call } = checked
  const isDirect = route.settledBy === 'receipt'
  const valueUnits = terms.origin.isNative ? route.amountInUnits : 0n
  assert(call.value === valueUnits, 'a call with another value')
  switch (read.name) {
    case 'swap':
      assert(isDirect, 'a swap in place of a deposit')
      assertSwap(read, checked)
      return true
    case 'wrap':
    case 'unwrap':
      assert(isDirect, 'a wrap in place of a deposit')
      assertWrap(read, checked)
      return false
    case 'aggregate':
      assert(isDirect, 'a swap in place of a deposit')
      assertAggregate(read, checked)
      return true
    case 'multicall':
      assert(isDirect, 'a swap in place of a deposit')
      assertMulticall(read, checked)
      return true
    case 'bridge':
      assert(!isDirect, 'a deposit in place of a swap')
      assertBridge(read, checked)
      return true
    default:
      throw refuse(`a call of ${read.name}`)
  }
}

const contractsOf = ({ origin }: SwapTerms): NonNullable<EvmChainRow['swaps']> => {
  const swaps = origin.chain.family === 'evm' ? origin.chain.swaps : null
  assert(swaps !== null, 'a route on a chain without swaps')
  return swaps
}
const isSame = (terms: SwapTerms, a: string, b: string) => sameAddress(terms.origin.chain, a, b)

/** Whether a decoded token is the bought one; a null token stands for the native coin. */
const isToken = ({ chain, token, isNative }: SwapTerms['destination'], given: string | null): boolean =>
  given === null ? isNative : !isNative && sameAddress(chain, given, token.address)

function assertSwap(read: CallOf<'swap'>, { terms, route, call }: Checked): void {
  const { routers } = contractsOf(terms)
  assert(
    routers.some((each) => isSame(terms, each, call.to)),
    'a call of a contract that is not configured',
  )
  assert(isToken(terms.origin, read.tokenIn), 'a swap of another token')
  assert(isToken(terms.destination, read.tokenOut), 'a swap into another token')
  assert(read.amountInUnits === route.amountInUnits, 'a swap of another amount')
  assert(read.amountOutMinUnits >= route.amountOutMinUnits, 'a swap with a lower minimum')
  assert(isSame(terms, read.recipient, terms.recipient), 'a swap for another recipient')
}

function assertWrap(read: CallOf<'wrap' | 'unwrap'>, { terms, route, call }: Checked): void {
  const { wrapped } = contractsOf(terms)
  assert(isSame(terms, call.to, wrapped), 'a call of a contract that is not configured')
  const [from, into] = read.name === 'wrap' ? [null, wrapped] : [wrapped, null]
  assert(isToken(terms.origin, from) && isToken(terms.destination, into), 'a wrap of another token')
  assert(read.amountUnits === route.amountInUnits, 'a wrap of another amount')
  assert(route.amountOutMinUnits <= read.amountUnits, 'a minimum above the wrap')
}

function assertAggregate(read: CallOf<'aggregate'>, { terms, route, call }: Checked): void {
  const { aggregator } = contractsOf(terms)
  assert(
    aggregator !== null && isSame(terms, call.to, aggregator),
    'a call of a contract that is not configured',
  )
  assert(isToken(terms.origin, read.tokenIn), 'a swap of another token')
  assert(isToken(terms.destination, read.tokenOut), 'a swap into another token')
  assert(read.amountInUnits === route.amountInUnits, 'a swap of another amount')
  assert(read.amountOutMinUnits >= route.amountOutMinUnits, 'a swap with a lower minimum')
  assert(isSame(terms, read.recipient, terms.recipient), 'a swap for another recipient')
}

/** The inner calls of a multicall are unknown, so the added payout and the receiver of the rest are checked. */
function assertMulticall(read: CallOf<'multicall'>, { terms, route, call }: Checked): void {
  const { relayRouters } = contractsOf(terms)
  const known = relayRouters.find(({ router }) => isSame(terms, router, read.router))
  const contract = read.tokenIn === null ? known?.router : known?.approvalProxy
  assert(
    contract !== undefined && isSame(terms, contract, call.to),
    'a call of a contract that is not configured',
  )
  assert(isToken(terms.origin, read.tokenIn), 'a swap of another token')
  assert(isToken(terms.destination, read.tokenOut), 'a swap into another token')
  assert(read.amountInUnits === route.amountInUnits, 'a swap of another amount')
  assert(read.amountOutMinUnits >= route.amountOutMinUnits, 'a swap with a lower minimum')
  assert(isSame(terms, read.recipient, terms.recipient), 'a swap for another recipient')
  assert(isSame(terms, read.refundTo, terms.account), 'a swap with a refund to another account')
}

type BridgeArrival = NonNullable<CallOf<'bridge'>['arrival']>

function assertArrival(arrival: BridgeArrival, { terms, route }: Checked): void {
  const { chain, token } = terms.destination
  assert(arrival.chainId === chain.id, 'a deposit for another chain')
  assert(sameAddress(chain, arrival.token, token.address), 'a deposit for another token')
  assert(sameAddress(chain, arrival.recipient, terms.recipient), 'a deposit for another recipient')
  assert(arrival.amountMinUnits >= route.amountOutMinUnits, 'a deposit with a lower minimum')
}

function assertBridge(read: CallOf<'bridge'>, { terms, route, call }: Checked): void {
  const { depository, aggregator } = contractsOf(terms)
  const contract = read.arrival ? aggregator : depository
  assert(contract !== null && isSame(terms, call.to, contract), 'a call of a contract that is not configured')
  if (read.arrival) assertArrival(read.arrival, { terms, route, call })
  assert(isToken(terms.origin, read.token), 'a deposit of another token')
  assert(read.amountUnits === route.amountInUnits, 'a deposit of another amount')
  assert(isSame(terms, read.depositor, terms.account), 'a deposit of another account')
  assert(read.requestId.toLowerCase() === route.depositId.toLowerCase(), 'a deposit for another request')
}

/** Checks a provider's approval, which may reset an allowance or ask for too much; an exact one replaces it. */
function assertApproval(read: DecodedCall | undefined, approval: EvmCall, { terms, call }: Checked): void {
  assert(read?.name === 'approve' && approval.value === 0n, 'an approval that cannot be read')
  assert(isToken(terms.origin, read.token), 'an approval of another token')
  assert(isSame(terms, read.spender, call.to), 'an approval for another contract')
}
