import { decodeEventLog, decodeFunctionData, encodeFunctionData, parseAbi } from 'viem/utils'
import type { DecodedCall, EvmCall } from '#kernel/task/signer.ts'
import type { Hex, Log } from './wire.ts'

/**
 * Decodes the calls of Relay's routers, versions 2.1 and 3, which run inner calls such as swaps. The inner calls are
 * not decoded. Instead, the call must contain a payout of the whole minimum, which makes the contract revert if the
 * inner calls yield less. `withMinimum` adds this payout; a call without it is not decoded.
 */

const call = 'struct RelayCall { address target; bool allowFailure; uint256 value; bytes callData; }'
const runs = 'RelayCall[] calls, address refundTo, address nftRecipient'
const sends = 'address[] tokens, address[] recipients, uint256[] amounts'
const pulls = 'address[] tokens, uint256[] amounts'
const callsAbi = parseAbi([
  call,
  `function transferAndMulticall(${pulls}, ${runs}, bytes metadata) payable`,
  `function transferAndMulticall(${pulls}, ${runs}) payable`,
  `function multicall(${runs}, bytes metadata) payable`,
  `function multicall(${runs}) payable`,
])
const payoutsAbi = parseAbi([
  `function cleanupErc20s(${sends}, bytes metadata)`,
  `function cleanupErc20s(${sends})`,
  'function cleanupNative(uint256 amount, address recipient, bytes metadata)',
  'function cleanupNative(uint256 amount, address recipient)',
  'function cleanupNativeViaCall(uint256 amount, address to, bytes data)',
])
const eventsAbi = parseAbi(['event SolverNativeTransfer(address to, uint256 amount)'])

const zeroAddress = '0x0000000000000000000000000000000000000000'
/** The most inner calls of one call of the router, the payout that `withMinimum` adds included. */
const innerCallsMax = 33
/** The id of a request, of this many digits, may follow the arguments of a call; the contracts ignore it. */
const requestIdDigits = 64

type Inner = { target: Hex; allowFailure: boolean; value: bigint; callData: Hex }
type Multicall = {
  /**
   * The tokens that the contract pulls from the sender; null if the router is called itself, with the native coin.
   */
  pulled: { tokens: readonly Hex[]; amounts: readonly bigint[] } | null
  calls: readonly Inner[]
  refundTo: Hex
  nftRecipient: Hex
  /** The argument `metadata` of version 3; null in the form of version 2.1. */
  metadata: Hex | null
}
/** A payment by the router: zero units mean all that the router holds, and a null token is the native coin. */
type Payout = { token: string | null; recipient: string; units: bigint }

const isSame = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()
const isSameToken = (a: string | null, b: string | null): boolean =>
  a === null || b === null ? a === b : isSame(a, b)

/**
 * Decodes a call of Relay. Returns undefined for other calls, and for a call without a payout of a minimum to the
 * account that receives the rest.
 */
export function readRelayCall({ to, value, data }: EvmCall): DecodedCall | undefined {
  const read = decode(data as Hex)
  if (!read) return undefined
  const { multicall } = read
  const spent = spentBy(multicall, value)
  const rest = restOf(multicall)
  const guarded = multicall.calls.at(-1 - (rest?.count ?? 0))
  if (!spent || !rest || !guarded) return undefined
  const [payout, ...others] = payoutsOf(guarded, multicall, rest.router) ?? []
  const isBound =
    payout !== undefined &&
    others.length === 0 &&
    payout.units > 0n &&
    isSame(payout.recipient, rest.recipient) &&
    rest.tokens.some((each) => isSameToken(each, payout.token))
  const isAtRouter = isSame(to, rest.router)
  if (!isBound || isAtRouter !== (multicall.pulled === null)) return undefined
  return {
    name: 'multicall',
    contract: to,
    router: rest.router,
    ...spent,
    tokenOut: payout.token,
    amountOutMinUnits: payout.units,
    recipient: payout.recipient,
    refundTo: multicall.refundTo,
  }
}

export type MinimumOut = { token: string | null; recipient: string; units: bigint }

/**
 * Adds a payout of the minimum before the payout of the rest, so that the contract reverts if the inner calls
 * yield less. Other calls, and those that do not end with payouts of the rest, are returned unchanged.
 */
export function withMinimum(sent: EvmCall, minimum: MinimumOut): EvmCall {
  const read = decode(sent.data as Hex)
  const rest = read && restOf(read.multicall)
  if (!read || !rest) return sent
  const { multicall, tail } = read
  const at = multicall.calls.length - rest.count
  const payouts = multicall.calls.slice(at).map((each) => withEvent(each, multicall))
  const calls = [...multicall.calls.slice(0, at), payoutCall(rest.router, multicall, minimum), ...payouts]
  return { ...sent, data: `${encode({ ...multicall, calls })}${tail}` }
}

/** Returns the one token or coin that the call takes; undefined if it takes several, or makes forbidden calls. */
function spentBy(
  { pulled, calls, refundTo, nftRecipient }: Multicall,
  value: bigint,
): { tokenIn: string | null; amountInUnits: bigint } | undefined {
  const innerUnits = calls.reduce((sum, each) => sum + each.value, 0n)
  const isPlain =
    calls.length <= innerCallsMax &&
    calls.every(({ allowFailure, target }) => !allowFailure && !isSame(target, refundTo)) &&
    (nftRecipient === zeroAddress || isSame(nftRecipient, refundTo))
  if (!isPlain) return undefined
  if (!pulled) return innerUnits <= value ? { tokenIn: null, amountInUnits: value } : undefined
  const [token, ...others] = pulled.tokens
  const [amountInUnits, ...otherAmounts] = pulled.amounts
  if (token === undefined || amountInUnits === undefined) return undefined
  if (others.length > 0 || otherAmounts.length > 0 || value !== 0n || innerUnits !== 0n) return undefined
  return { tokenIn: token, amountInUnits }
}

type Rest = { router: string; recipient: string; tokens: (string | null)[]; count: number }

/**
 * Returns the payouts at the end of the call that pay everything left at the router to one account, or undefined if the
 * call does not end with such payouts.
 */
function restOf(multicall: Multicall): Rest | undefined {
  const last = multicall.calls.at(-1)
  const recipient = last && payoutsOf(last, multicall, last.target)?.[0]?.recipient
  if (!last || recipient === undefined) return undefined
  const tokens: (string | null)[] = []
  let count = 0
  for (const each of multicall.calls.toReversed()) {
    const payouts = payoutsOf(each, multicall, last.target)
    if (!payouts?.every(({ units, recipient: to }) => units === 0n && isSame(to, recipient))) break
    tokens.push(...payouts.map(({ token }) => token))
    count += 1
  }
  return count === 0 ? undefined : { router: last.target, recipient, tokens, count }
}

/** Returns the payouts of an inner call; undefined if it is no plain payout of this router in the call's form. */
function payoutsOf(
  { target, allowFailure, value, callData }: Inner,
  { metadata }: Multicall,
  router: string,
): Payout[] | undefined {
  if (!isSame(target, router) || allowFailure || value !== 0n) return undefined
  const decoded = decodePayout(callData)
  if (!decoded) return undefined
  if (decoded.functionName === 'cleanupNativeViaCall') {
    const [units, recipient, data] = decoded.args
    return data === '0x' ? [{ token: null, recipient, units }] : undefined
  }
  if (decoded.functionName === 'cleanupNative') {
    const [units, recipient, note] = decoded.args
    return (note === undefined) === (metadata === null) ? [{ token: null, recipient, units }] : undefined
  }
  const [tokens, recipients, amounts, note] = decoded.args
  const isWhole = tokens.length > 0 && tokens.length === recipients.length && tokens.length === amounts.length
  if (!isWhole || (note === undefined) !== (metadata === null)) return undefined
  return tokens.map((token, at) => ({ token, recipient: recipients[at]!, units: amounts[at]! }))
}

const payoutCall = (router: string, { metadata }: Multicall, { token, recipient, units }: Payout): Inner => ({
  target: router as Hex,
  allowFailure: false,
  value: 0n,
  callData:
    token === null
      ? nativePayout(recipient as Hex, units, metadata)
      : tokenPayout(token as Hex, recipient as Hex, units, metadata),
})

const nativePayout = (recipient: Hex, units: bigint, metadata: Hex | null): Hex =>
  encodeFunctionData({
    abi: payoutsAbi,
    functionName: 'cleanupNative',
    args: metadata === null ? [units, recipient] : [units, recipient, metadata],
  })

function tokenPayout(token: Hex, recipient: Hex, units: bigint, metadata: Hex | null): Hex {
  const plain = [[token], [recipient], [units]] as const
  const args = metadata === null ? plain : ([...plain, metadata] as const)
  return encodeFunctionData({ abi: payoutsAbi, functionName: 'cleanupErc20s', args })
}

/** Replaces `cleanupNativeViaCall`, which logs no payment in version 2.1, by the plain call, which always does. */
function withEvent(inner: Inner, multicall: Multicall): Inner {
  const decoded = decodePayout(inner.callData)
  if (decoded?.functionName !== 'cleanupNativeViaCall') return inner
  const [units, recipient] = decoded.args
  return payoutCall(inner.target, multicall, { token: null, recipient, units })
}

function encode({ pulled, calls, refundTo, nftRecipient, metadata }: Multicall): Hex {
  const run = [calls, refundTo, nftRecipient] as const
  if (!pulled) {
    const args = metadata === null ? run : ([...run, metadata] as const)
    return encodeFunctionData({ abi: callsAbi, functionName: 'multicall', args })
  }
  const pull = [pulled.tokens, pulled.amounts, ...run] as const
  const args = metadata === null ? pull : ([...pull, metadata] as const)
  return encodeFunctionData({ abi: callsAbi, functionName: 'transferAndMulticall', args })
}

/** Decodes the arguments of a call, and the request id that may follow them; undefined for any other bytes. */
function decode(data: Hex): { multicall: Multicall; tail: string } | undefined {
  try {
    const multicall = multicallOf(data)
    const again = encode(multicall).toLowerCase()
    const given = data.toLowerCase()
    const tail = given.startsWith(again) ? given.slice(again.length) : undefined
    return tail !== undefined && (tail === '' || tail.length === requestIdDigits)
      ? { multicall, tail }
      : undefined
  } catch {
    return undefined
  }
}

function multicallOf(data: Hex): Multicall {
  const decoded = decodeFunctionData({ abi: callsAbi, data })
  if (decoded.functionName === 'multicall') {
    const [calls, refundTo, nftRecipient, metadata = null] = decoded.args
    return { pulled: null, calls, refundTo, nftRecipient, metadata }
  }
  const [tokens, amounts, calls, refundTo, nftRecipient, metadata = null] = decoded.args
  return { pulled: { tokens, amounts }, calls, refundTo, nftRecipient, metadata }
}

function decodePayout(data: Hex) {
  try {
    const decoded = decodeFunctionData({ abi: payoutsAbi, data })
    const again = encodeFunctionData({ abi: payoutsAbi, ...decoded } as Parameters<
      typeof encodeFunctionData
    >[0])
    return again.toLowerCase() === data.toLowerCase() ? decoded : undefined
  } catch {
    return undefined
  }
}

/** Returns native coins that one of these routers paid, or undefined for other events and coins that it received. */
export function routerPaymentOf(
  log: Log,
  routers: readonly string[],
): { account: string; amountUnits: bigint } | undefined {
  if (!routers.some((each) => isSame(each, log.address))) return undefined
  try {
    const { args } = decodeEventLog({
      abi: eventsAbi,
      topics: log.topics as [Hex, ...Hex[]],
      data: log.data,
    })
    if (isSame(args.to, log.address)) return undefined
    return { account: args.to.toLowerCase(), amountUnits: args.amount }
  } catch {
    return undefined
  }
}
