import { decodeEventLog, decodeFunctionData, encodeFunctionData, parseAbi } from 'viem/utils'
import type { SwapContracts } from '#kernel/money/chains.ts'
import type { DecodedCall, EvmCall } from '#kernel/task/signer.ts'
import { lifiDepositOf } from './lifi-calls.ts'
import { routerPaymentOf } from './relay-calls.ts'
import type { Hex, Log } from './wire.ts'

/** Reads the calls of swaps for custody: the Uniswap V2 router, the wrapped coin, and Relay's depository. */

const callsAbi = parseAbi([
  'function swapExactTokensForTokens(uint256 amountIn, uint256 amountOutMin, address[] path, address to, uint256 deadline) returns (uint256[])',
  'function swapExactTokensForETH(uint256 amountIn, uint256 amountOutMin, address[] path, address to, uint256 deadline) returns (uint256[])',
  'function swapExactETHForTokens(uint256 amountOutMin, address[] path, address to, uint256 deadline) payable returns (uint256[])',
  'function deposit() payable',
  'function withdraw(uint256 amount)',
  'function depositErc20(address depositor, address token, uint256 amount, bytes32 id)',
  'function depositNative(address depositor, bytes32 id) payable',
])
const eventsAbi = parseAbi([
  'event Deposit(address indexed dst, uint256 wad)',
  'event Withdrawal(address indexed src, uint256 wad)',
  'event RelayErc20Deposit(address from, address token, uint256 amount, bytes32 id)',
  'event RelayNativeDeposit(address from, uint256 amount, bytes32 id)',
])

/** Calls of the router and of the wrapped coin may end with the id of their request, which the contracts ignore. */
const requestIdDigits = 64
const taggable = [
  'swapExactTokensForTokens',
  'swapExactTokensForETH',
  'swapExactETHForTokens',
  'deposit',
  'withdraw',
]

const swapAt = (router: string, path: readonly string[]) =>
  ({ name: 'swap', router, path: [...path] }) as const

/** Decodes the call of a swap; undefined for other calls, and for bytes beyond the call and a request's id. */
export function readSwapCall({ to, value, data }: EvmCall): DecodedCall | undefined {
  const decoded = decode(data as Hex)
  if (!decoded) return undefined
  switch (decoded.functionName) {
    case 'swapExactTokensForTokens': {
      const [amountInUnits, amountOutMinUnits, path, recipient] = decoded.args
      const ends = { tokenIn: path[0] ?? '', tokenOut: path.at(-1) ?? '' }
      return { ...swapAt(to, path), ...ends, amountInUnits, amountOutMinUnits, recipient }
    }
    case 'swapExactTokensForETH': {
      const [amountInUnits, amountOutMinUnits, path, recipient] = decoded.args
      const ends = { tokenIn: path[0] ?? '', tokenOut: null }
      return { ...swapAt(to, path), ...ends, amountInUnits, amountOutMinUnits, recipient }
    }
    case 'swapExactETHForTokens': {
      const [amountOutMinUnits, path, recipient] = decoded.args
      const ends = { tokenIn: null, tokenOut: path.at(-1) ?? '' }
      return { ...swapAt(to, path), ...ends, amountInUnits: value, amountOutMinUnits, recipient }
    }
    case 'deposit':
      return { name: 'wrap', wrapped: to, amountUnits: value }
    case 'withdraw':
      return { name: 'unwrap', wrapped: to, amountUnits: decoded.args[0] }
    case 'depositErc20': {
      const [depositor, token, amountUnits, requestId] = decoded.args
      return { name: 'bridge', depository: to, depositor, token, amountUnits, requestId }
    }
    case 'depositNative': {
      const [depositor, requestId] = decoded.args
      return { name: 'bridge', depository: to, depositor, token: null, amountUnits: value, requestId }
    }
  }
}

function decode(data: Hex) {
  try {
    const decoded = decodeFunctionData({ abi: callsAbi, data })
    const again = encodeFunctionData({ abi: callsAbi, ...decoded } as Parameters<
      typeof encodeFunctionData
    >[0]).toLowerCase()
    const given = data.toLowerCase()
    const rest = given.startsWith(again) ? given.length - again.length : -1
    const isKnown = rest === 0 || (rest === requestIdDigits && taggable.includes(decoded.functionName))
    return isKnown ? decoded : undefined
  } catch {
    return undefined
  }
}

/** Returns the last word of a call's data, in which the id of the request stands if the call has one. */
export const requestIdOf = ({ data }: Pick<EvmCall, 'data'>): string | undefined =>
  data.length > requestIdDigits + 2 ? `0x${data.slice(-requestIdDigits).toLowerCase()}` : undefined

/** A change that no transfer event shows: coins were wrapped, unwrapped, or paid in the native coin. */
export type WrapLog = { kind: 'wrapped' | 'unwrapped' | 'paid'; account: string; amountUnits: bigint }
export type BridgeDepositLog = {
  depository: string
  /** The payer; null if the event names none, so that only the request's id says whose deposit it is. */
  from: string | null
  /** What the contract took from the payer; null if it swapped first. A null token is the native coin. */
  taken: { token: string | null; amountUnits: bigint } | null
  requestId: string
}

const eventOf = (log: Log) => {
  try {
    return decodeEventLog({ abi: eventsAbi, topics: log.topics as [Hex, ...Hex[]], data: log.data })
  } catch {
    return undefined
  }
}

/** Returns wraps, unwraps and native payments, in the order of the logs of the wrapped coin and Relay's routers. */
export function wrapsOf(
  logs: readonly Log[],
  { wrapped, relayRouters }: Pick<SwapContracts, 'wrapped' | 'relayRouters'>,
): WrapLog[] {
  const routers = relayRouters.map(({ router }) => router)
  return logs.flatMap((log): WrapLog[] => {
    const payment = routerPaymentOf(log, routers)
    if (payment) return [{ kind: 'paid', ...payment }]
    if (log.address.toLowerCase() !== wrapped.toLowerCase()) return []
    const event = eventOf(log)
    if (event?.eventName === 'Deposit') {
      const { dst, wad } = event.args
      return [{ kind: 'wrapped', account: dst.toLowerCase(), amountUnits: wad }]
    }
    if (event?.eventName !== 'Withdrawal') return []
    const { src, wad } = event.args
    return [{ kind: 'unwrapped', account: src.toLowerCase(), amountUnits: wad }]
  })
}

export const bridgeDepositsOf = (logs: readonly Log[], depository: string): BridgeDepositLog[] =>
  logs.flatMap((log): BridgeDepositLog[] => {
    if (log.address.toLowerCase() !== depository.toLowerCase()) return []
    const started = lifiDepositOf(log)
    if (started) return [{ ...started, depository: started.contract, from: null }]
    const event = eventOf(log)
    if (event?.eventName !== 'RelayErc20Deposit' && event?.eventName !== 'RelayNativeDeposit') return []
    const { from, amount, id } = event.args
    const token = 'token' in event.args ? event.args.token.toLowerCase() : null
    return [
      {
        depository: log.address.toLowerCase(),
        from: from.toLowerCase(),
        taken: { token, amountUnits: amount },
        requestId: id.toLowerCase(),
      },
    ]
  })
