import { assetOf, type Chain, sameAddress } from '#kernel/chains.ts'
import { exactlyOneOf, Fault, invalid } from '#kernel/fault.ts'
import { fromUnits, mulDiv, toFixedPoint, toMicros, usdDecimals, valueMicros } from '#kernel/money.ts'
import { chainByRef, tokenByRef } from '#kernel/token-ref.ts'
import type { SwapInput } from './contract.ts'
import type { SwapDeps } from './deps.ts'
import { swapLimits } from './limits.ts'
import type { SwapTerms, SwapToken } from './terms.ts'

/** A request in our names: chains, tokens, accounts and the amount in units. */

type RequestDeps = Pick<SwapDeps, 'chains' | 'evmOf' | 'walletsOf' | 'prices'>

export async function termsOf(deps: RequestDeps, input: SwapInput, userId: string): Promise<SwapTerms> {
  const { chains } = deps
  if ((input.amount === undefined) === (input.amount_usd === undefined))
    throw exactlyOneOf('amount', 'amount_usd', { hasBoth: input.amount !== undefined })
  const originChain = chainByRef(chains, input.chain_id_in, 'chain_id_in')
  assertServed(originChain, 'chain_id_in')
  const destinationChain =
    input.chain_id_out === undefined ? originChain : chainByRef(chains, input.chain_id_out, 'chain_id_out')
  assertServed(destinationChain, 'chain_id_out')
  const [tokenIn, tokenOut, wallets] = await Promise.all([
    tokenAt(deps, originChain, { ref: input.token_in, field: 'token_in' }),
    tokenAt(deps, destinationChain, { ref: input.token_out, field: 'token_out' }),
    deps.walletsOf(userId),
  ])
  const origin = { chain: originChain, ...tokenIn }
  const destination = { chain: destinationChain, ...tokenOut }
  if (
    originChain === destinationChain &&
    sameAddress(originChain, tokenIn.token.address, tokenOut.token.address)
  )
    throw invalid('token_out', 'unsupported_asset', 'Input should be another token than `token_in`')
  const addressOn = ({ family }: Chain) =>
    wallets.find(({ kind }) => kind === (family === 'evm' ? 'evm' : 'svm'))?.address
  const account = addressOn(originChain)
  const recipient = addressOn(destinationChain)
  if (account === undefined || recipient === undefined)
    throw new Fault('unavailable', 'The wallets are still being made; try again')
  if (input.recipient && !sameAddress(destinationChain, input.recipient, recipient))
    throw invalid(
      'recipient',
      'value_error',
      `Input should be your own wallet on ${destinationChain.displayName}: ${recipient}`,
    )
  const amount = await amountOf(deps, input, origin)
  return {
    userId,
    origin,
    destination,
    account,
    recipient,
    ...amount,
    slippageBps: input.slippage_bps ?? swapLimits.slippageBps.default,
    deadlineSeconds: input.deadline_seconds ?? swapLimits.deadlineSeconds.default,
    maxFeeBps: input.max_fee_bps ?? null,
  }
}

function assertServed(chain: Chain, field: string): void {
  if (chain.family === 'evm' && chain.swaps === null)
    throw invalid(field, 'unsupported_chain', `Swaps do not serve ${chain.displayName}`)
}

type Named = { ref: string; field: string }

async function tokenAt({ evmOf }: RequestDeps, chain: Chain, { ref, field }: Named) {
  const found = tokenByRef(chain, ref, field)
  if ('token' in found) return found
  const facts = await evmOf(chain.id)?.tokenFacts(found.unlisted)
  if (facts) return { token: facts, isNative: false }
  throw invalid(field, 'unsupported_asset', `Input should be a token on ${chain.displayName}`)
}

export const priceKeyOf = ({ chain, token, isNative }: SwapToken): string =>
  isNative ? chain.native.priceId : `${chain.llamaSlug}:${token.address}`

export const assetNameOf = ({ chain, token }: SwapToken): string => assetOf(chain, token.address)

/** The value in micro-dollars at the price source; null where it has no price. */
export async function valueAtPrice(
  { prices }: Pick<SwapDeps, 'prices'>,
  token: SwapToken,
  amountUnits: bigint,
): Promise<bigint | null> {
  const price = (await prices.get([priceKeyOf(token)])).get(priceKeyOf(token))
  return price ? valueMicros(amountUnits, token.token.decimals, price.price, 'up') : null
}

async function amountOf({ prices }: RequestDeps, input: SwapInput, origin: SwapToken) {
  const key = priceKeyOf(origin)
  const price = (await prices.get([key])).get(key)?.price
  const { decimals, symbol } = origin.token
  if (input.amount_usd !== undefined && price === undefined)
    throw new Fault('unavailable', `There is no trusted price of ${symbol}; send \`amount\` instead`)
  const amountInUnits =
    input.amount_usd === undefined
      ? BigInt(input.amount!)
      : mulDiv(toFixedPoint(input.amount_usd), 10n ** BigInt(decimals), toFixedPoint(price!))
  if (amountInUnits === 0n)
    throw invalid(fieldOf(input), 'greater_than', 'Input should be greater than 0', { gt: 0 })
  const valueInMicros = price === undefined ? null : valueMicros(amountInUnits, decimals, price, 'up')
  if (valueInMicros !== null && valueInMicros < toMicros(swapLimits.minSwapUsd))
    throw invalid(
      fieldOf(input),
      'below_minimum',
      `Input should be worth at least ${swapLimits.minSwapUsd} USD, and is worth ${fromUnits(valueInMicros, usdDecimals)}`,
      { minimum: swapLimits.minSwapUsd, unit: 'USD' },
    )
  return { amountInUnits, valueInMicros }
}

const fieldOf = ({ amount }: SwapInput) => (amount === undefined ? 'amount_usd' : 'amount')
