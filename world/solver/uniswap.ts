import { concat, decodeFunctionResult, encodeFunctionData, parseAbi } from 'viem'
import { uniswapArtifact } from '#world/evm/artifact.ts'
import type { Address } from '#world/evm/chains.ts'
import type { Rpc } from '#world/evm/rpc.ts'
import { type Currency, type SolverChain, usdcOn, wrappedOn } from './chains.ts'
import { QuoteError, rejectQuote } from './errors.ts'
import { minimumAfter } from './pricing.ts'
import type { QuoteInput } from './quote-input.ts'
import type { SwapCallForm } from './realism.ts'
import type { Hex } from './request.ts'
import { gasOfRouter, routerCall } from './router-calls.ts'

export type SwapRoute = {
  operation: 'swap' | 'wrap' | 'unwrap'
  inUnits: bigint
  outUnits: bigint
  minimumOut: bigint
  /** Contract that is called, and may take the input. */
  to: string
  data: Hex
  value: bigint
  gas?: bigint
}

/**
 * More than a swap takes: its gas cannot be estimated, because the first swap of a second in a pool stores more than the
 * next one, and an estimate sees the second of the last block.
 */
const gasOfFirstPool = 220_000n
const gasOfNextPool = 130_000n

const wrapAbi = parseAbi(['function deposit() payable', 'function withdraw(uint256 amount)'])

/** Every pool of the world is against USDC. */
const pathOf = (chain: SolverChain, input: Currency, output: Currency): Address[] => {
  const usdc = usdcOn(chain)
  const ends = [input, output].map((each) => (each.metadata.isNative ? wrappedOn(chain) : each))
  const path = ends.includes(usdc) ? ends : [ends[0], usdc, ends[1]]
  return path.map((each) => {
    if (!each) throw new QuoteError(400, 'NO_SWAP_ROUTES_FOUND', 'No routes found')
    return each.address as Address
  })
}

const wrapRoute = ({ origin, input, output, amount }: QuoteInput): SwapRoute | undefined => {
  const wrapped = wrappedOn(origin)
  const isWrap = input.metadata.isNative && output === wrapped
  if (!wrapped || (!isWrap && !(input === wrapped && output.metadata.isNative))) return undefined
  const data = isWrap
    ? encodeFunctionData({ abi: wrapAbi, functionName: 'deposit' })
    : encodeFunctionData({ abi: wrapAbi, functionName: 'withdraw', args: [amount] })
  return {
    operation: isWrap ? 'wrap' : 'unwrap',
    inUnits: amount,
    outUnits: amount,
    minimumOut: amount,
    to: wrapped.address,
    data,
    value: isWrap ? amount : 0n,
  }
}

type Trade = { path: Address[]; inUnits: bigint; outUnits: bigint; recipient: string; deadline: bigint }

/** The pools' function for the trade; an exact output gives the rest of the input back. */
const swapCall = (quote: QuoteInput, { path, inUnits, outUnits, recipient, deadline }: Trade) => {
  const { input, output, tradeType } = quote
  const [fromNative, toNative] = [input.metadata.isNative, output.metadata.isNative]
  const names = fromNative ? ['ETH', 'Tokens'] : ['Tokens', toNative ? 'ETH' : 'Tokens']
  const exactOutput = tradeType === 'EXACT_OUTPUT'
  // swapETHForExactTokens, but swapTokensForExactTokens and swapTokensForExactETH.
  const functionName = exactOutput
    ? `swap${names[0]}ForExact${names[1]}`
    : `swapExact${names[0]}For${names[1]}`
  const tail = [path, recipient, deadline]
  const limits = exactOutput ? [outUnits, inUnits] : [inUnits, outUnits]
  return {
    functionName,
    args: fromNative ? [exactOutput ? outUnits : limits[1], ...tail] : [...limits, ...tail],
  }
}

/** A trade at the pools of the origin chain, which the user sends. */
export const routeSwap = async (
  rpc: Rpc,
  quote: QuoteInput,
  { requestId, expiresMs, form }: { requestId: Hex; expiresMs: number; form: SwapCallForm },
): Promise<SwapRoute> => {
  const { origin, input, output, amount, tradeType, slippageBps } = quote
  if (input === output) return rejectQuote('UNSUPPORTED_ROUTE', 'Input and output are the same currency')
  const wrap = wrapRoute(quote)
  if (wrap && quote.recipient !== quote.user)
    return rejectQuote('UNSUPPORTED_ROUTE', 'The recipient of a wrap must be its sender')
  // The number of the request follows the arguments, which the contract ignores.
  if (wrap) return { ...wrap, data: concat([wrap.data, requestId]) }
  const router = origin.evm?.router ?? ''
  const { abi } = uniswapArtifact('v2-periphery/build/UniswapV2Router02.json')
  const path = pathOf(origin, input, output)
  const functionName = tradeType === 'EXACT_INPUT' ? 'getAmountsOut' : 'getAmountsIn'
  const read = encodeFunctionData({ abi, functionName, args: [amount, path] })
  const amounts = (await rpc.call('eth_call', [{ to: router, data: read }, 'latest']).then(
    (data) => decodeFunctionResult({ abi, functionName, data: data as Hex }),
    (error: Error) => {
      if (!/revert/i.test(error.message)) throw error
      return rejectQuote('INSUFFICIENT_LIQUIDITY', 'Insufficient liquidity in the pools')
    },
  )) as readonly bigint[]
  const expectedIn = amounts[0] ?? 0n
  const outUnits = amounts.at(-1) ?? 0n
  if (outUnits === 0n) return rejectQuote('AMOUNT_TOO_LOW', 'Swap output amount is too small')
  const isExactOutput = tradeType === 'EXACT_OUTPUT'
  const inUnits = isExactOutput ? (expectedIn * BigInt(10_000 + slippageBps)) / 10_000n : expectedIn
  const minimumOut = isExactOutput ? outUnits : minimumAfter(outUnits, slippageBps)
  const deadline = BigInt(Math.floor(expiresMs / 1000))
  const value = input.metadata.isNative ? inUnits : 0n
  const gas = gasOfFirstPool + BigInt(path.length - 2) * gasOfNextPool
  const shown = { operation: 'swap', inUnits, outUnits, minimumOut, value } as const
  const tradeOf = (trade: Pick<Trade, 'outUnits' | 'recipient'>): Hex => {
    const { functionName: name, args } = swapCall(quote, { ...trade, path, inUnits, deadline })
    return encodeFunctionData({ abi, functionName: name, args })
  }
  if (form === 'pool') {
    const data = tradeOf({ outUnits: minimumOut, recipient: quote.recipient })
    return { ...shown, to: router, data: concat([data, requestId]), gas }
  }
  const called = routerCall(quote, {
    form,
    requestId,
    pools: router,
    inUnits,
    // An exchange between them guarantees nothing: only the client can demand the minimum.
    trade: (recipient) => tradeOf({ outUnits: isExactOutput ? outUnits : 1n, recipient }),
  })
  return { ...shown, ...called, gas: gas + gasOfRouter }
}
