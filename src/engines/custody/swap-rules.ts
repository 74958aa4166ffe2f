import type { SwapContracts } from '#kernel/money/chains.ts'
import type { DecodedCall, EvmCall, EvmIntent, SwapCall } from '#kernel/task/signer.ts'
import { assertRule, isSameAddress } from './assert-rule.ts'

/** Custody takes the contracts of swaps from configuration, and the output has to go to the user's own account. */

export type SigningSwaps = SwapContracts & {
  /** The address that stands for the native coin. */
  native: string
}
/** The units that a contract takes, by an approval or as the value of the call. */
export type Taken = { token: string; spender: string; amountUnits: bigint }
type SwapContext = { intent: EvmIntent; own: string; swaps: SigningSwaps | undefined }
type CallOf<Name extends SwapCall['name']> = Extract<SwapCall, { name: Name }>

const pathMin = 2
const pathMax = 5
const swapNames: readonly string[] = ['swap', 'wrap', 'unwrap', 'bridge', 'aggregate', 'multicall']
export const isSwapCall = (read: DecodedCall): read is SwapCall => swapNames.includes(read.name)

/** Returns the contracts that may be approved for the exact amount that they take. */
export function swapSpenders(swaps: SigningSwaps | undefined): string[] {
  if (!swaps) return []
  const { routers, depository, aggregator, relayRouters } = swaps
  const proxies = relayRouters.map(({ approvalProxy }) => approvalProxy)
  return [...routers, depository, aggregator, ...proxies].filter((each) => each !== null)
}

/** Checks a call of a swap; returns what it takes from the wallet, or null if it takes nothing out. */
export function assertSwapCall(read: SwapCall, call: EvmCall, context: SwapContext): Taken | null {
  const { intent, swaps } = context
  assertRule(swaps !== undefined, 'contract', 'nothing is swapped on this chain')
  const taken = takenBy(read, { ...context, swaps })
  const isNative = read.name === 'wrap' || (taken !== null && isSameAddress(taken.token, swaps.native))
  const valueUnits = isNative ? (taken?.amountUnits ?? call.value) : 0n
  assertRule(call.value === valueUnits, 'value', 'the call carries another native value than it uses')
  if (taken === null) return null
  assertRule(taken.amountUnits > 0n, 'amount', 'the call takes nothing')
  const isListed = intent.spends.some(
    ({ token, spender, amountUnits }) =>
      isSameAddress(token, taken.token) &&
      isSameAddress(spender, taken.spender) &&
      amountUnits === taken.amountUnits,
  )
  assertRule(isListed, 'spend', 'what the call takes is not a spend of the intent')
  return taken
}

type Known = SwapContext & { swaps: SigningSwaps }

function takenBy(read: SwapCall, context: Known): Taken | null {
  if (read.name === 'swap') return takenBySwap(read, context)
  if (read.name === 'bridge') return takenByBridge(read, context)
  if (read.name === 'aggregate') return takenByAggregator(read, context)
  if (read.name === 'multicall') return takenByMulticall(read, context)
  assertTarget(read.wrapped, [context.swaps.wrapped])
  return null
}

const assertTarget = (target: string, allowed: readonly (string | null)[]): void =>
  assertRule(
    allowed.some((each) => each !== null && isSameAddress(each, target)),
    'contract',
    'the contract is not configured',
  )

function takenBySwap(read: CallOf<'swap'>, { own, swaps }: Known): Taken {
  const { router, path, tokenIn, tokenOut, recipient, amountInUnits, amountOutMinUnits } = read
  assertTarget(router, swaps.routers)
  assertRule(isSameAddress(recipient, own), 'receiver', "the output would not go to the user's own account")
  assertRule(amountOutMinUnits > 0n, 'minimum', 'the swap has no minimum output')
  assertRule(path.length >= pathMin && path.length <= pathMax, 'path', 'the path is out of range')
  const [first = '', last = ''] = [path[0], path.at(-1)]
  const wraps = [...(tokenIn === null ? [first] : []), ...(tokenOut === null ? [last] : [])]
  assertRule(
    wraps.every((each) => isSameAddress(each, swaps.wrapped)),
    'path',
    'the path does not begin or end with the wrapped coin',
  )
  return { token: tokenIn ?? swaps.native, spender: router, amountUnits: amountInUnits }
}

function assertPaysOwn(read: CallOf<'aggregate' | 'multicall'>, own: string): void {
  assertRule(
    isSameAddress(read.recipient, own),
    'receiver',
    "the output would not go to the user's own account",
  )
  assertRule(read.amountOutMinUnits !== 0n, 'minimum', 'the swap has no minimum output')
}

function takenByAggregator(read: CallOf<'aggregate'>, { own, swaps }: Known): Taken {
  assertTarget(read.contract, [swaps.aggregator])
  assertPaysOwn(read, own)
  return { token: read.tokenIn ?? swaps.native, spender: read.contract, amountUnits: read.amountInUnits }
}

/**
 * The inner calls of a multicall are unknown. The added payout of the minimum output binds them, and the approval
 * bounds what they can take.
 */
function takenByMulticall(read: CallOf<'multicall'>, { own, swaps }: Known): Taken {
  const known = swaps.relayRouters.find(({ router }) => isSameAddress(router, read.router))
  assertRule(known !== undefined, 'contract', 'the contract is not configured')
  assertTarget(read.contract, [read.tokenIn === null ? known.router : known.approvalProxy])
  assertPaysOwn(read, own)
  assertRule(isSameAddress(read.refundTo, own), 'receiver', "a refund would not go to the user's own account")
  return { token: read.tokenIn ?? swaps.native, spender: read.contract, amountUnits: read.amountInUnits }
}

function takenByBridge(
  { depository, depositor, token, amountUnits, arrival }: CallOf<'bridge'>,
  { own, swaps }: Known,
): Taken {
  assertTarget(depository, [arrival ? swaps.aggregator : swaps.depository])
  if (arrival) {
    assertRule(
      isSameAddress(arrival.recipient, own),
      'receiver',
      "the output would not go to the user's own account",
    )
    assertRule(arrival.amountMinUnits > 0n, 'minimum', 'the bridge has no minimum output')
  }
  assertRule(isSameAddress(depositor, own), 'receiver', "a refund would not go to the user's own account")
  return { token: token ?? swaps.native, spender: depository, amountUnits }
}

const keyOf = ({ token, spender }: Taken) => `${token.toLowerCase()} ${spender.toLowerCase()}`
function sumsOf(list: readonly Taken[]): Map<string, bigint> {
  const sums = new Map<string, bigint>()
  for (const each of list) sums.set(keyOf(each), (sums.get(keyOf(each)) ?? 0n) + each.amountUnits)
  return sums
}

/** The contract could later take the rest of an approval that its batch does not use up. */
export function assertApprovalsUsed(
  approvals: readonly Taken[],
  taken: readonly Taken[],
  swaps: SigningSwaps | undefined,
): void {
  const spenders = swapSpenders(swaps)
  const approved = sumsOf(
    approvals.filter(({ spender }) => spenders.some((each) => isSameAddress(each, spender))),
  )
  const used = sumsOf(taken.filter(({ token }) => swaps !== undefined && !isSameAddress(token, swaps.native)))
  const isExact =
    approved.size === used.size && [...approved].every(([key, units]) => used.get(key) === units)
  assertRule(isExact, 'approval', 'the approvals are not exactly what the calls of the batch take')
}
