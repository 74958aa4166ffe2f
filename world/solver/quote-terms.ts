import { depository } from '#world/evm/chains.ts'
import type { ChainAccount } from './chain-account.ts'
import type { Connections } from './connections.ts'
import { rejectQuote } from './errors.ts'
import type { Inventory } from './inventory.ts'
import { parseUsd, usdOfUnits } from './money.ts'
import type { Prices } from './prices.ts'
import { impactBpsMax, minimumAfter, type PricedCurrency, termsOfInput, termsOfOutput } from './pricing.ts'
import type { QuoteInput } from './quote-input.ts'
import type { Quoted } from './quote-view.ts'
import type { RealismControl } from './realism.ts'
import type { Hex } from './request.ts'
import {
  allowanceCall,
  approvalOf,
  type EvmFees,
  evmDepositStep,
  evmStep,
  programInstructions,
  type QuoteIds,
  type Step,
  solanaDepositSteps,
  transferInstructions,
} from './steps.ts'
import { routeSwap } from './uniswap.ts'

/** Deposits of less are not worth a payment. */
const depositUsdMin = 10n ** 16n

export type QuoteTermsDeps = {
  accountOf: (chainId: number) => ChainAccount
  connections: Connections
  inventory: Inventory
  prices: Prices
  realism: RealismControl
}

type Terms = { quoted: Quoted; steps: Step[] }

export type QuoteTerms = {
  /** The user's own transaction at the pools of a chain. */
  swap: (input: QuoteInput, id: Hex, expiresMs: number) => Promise<Terms>
  /** Whether a deposit names an order; a transfer with a memo names the request. */
  hasOrder: (input: QuoteInput) => boolean
  /** A deposit that the solver fills from its inventory. */
  deposit: (input: QuoteInput, ids: QuoteIds) => Promise<Terms>
}

const hasOrder = (realism: RealismControl, { origin }: QuoteInput): boolean =>
  origin.vm === 'evm' || realism.current().solanaDeposits === 'program'

export const createQuoteTerms = ({
  accountOf,
  connections,
  inventory,
  prices,
  realism,
}: QuoteTermsDeps): QuoteTerms => {
  const feesOf = async (input: QuoteInput): Promise<EvmFees> => {
    const gasPrice = BigInt(String(await connections.rpc(input.origin.id).call('eth_gasPrice')))
    const tip = 10n ** 8n
    return { maxFeePerGas: String(gasPrice * 2n + tip), maxPriorityFeePerGas: String(tip) }
  }

  const priced = async ({ input, output, origin }: QuoteInput) => ({
    inPrice: await prices.requirePrice(input),
    outPrice: await prices.requirePrice(output),
    nativePrice: await prices.requirePrice(origin.native),
    originGasUsd: parseUsd(origin.gasUsd),
  })

  /** Adds an approval before the step where the called contract may not take the input yet. */
  const withApproval = async (
    input: QuoteInput,
    step: Step,
    { spender, units, fees }: { spender: string; units: bigint; fees: EvmFees },
  ): Promise<Step[]> => {
    const { origin, user, input: currency } = input
    if (currency.metadata.isNative) return [step]
    const call = allowanceCall(currency, user, spender)
    const allowed = BigInt(String(await connections.rpc(origin.id).call('eth_call', [call, 'latest'])))
    if (allowed >= units) return [step]
    return [evmStep(input, step.requestId, approvalOf(currency, spender, units), fees), step]
  }

  const quoteSwap = async (input: QuoteInput, id: Hex, expiresMs: number): Promise<Terms> => {
    const asked = { requestId: id, expiresMs, form: realism.current().swapCalls }
    const route = await routeSwap(connections.rpc(input.origin.id), input, asked)
    const fees = await feesOf(input)
    const { to, data, value, gas } = route
    const call = { id: 'swap', to, data, value, gas } as const
    const step = evmStep(input, id, call, fees)
    const steps =
      route.operation === 'swap'
        ? await withApproval(input, step, { spender: to, units: route.inUnits, fees })
        : [step]
    const known = await priced(input)
    const { inUnits, outUnits, minimumOut, operation } = route
    const lostUsd =
      usdOfUnits(inUnits, input.input, known.inPrice) - usdOfUnits(outUnits, input.output, known.outPrice)
    const quoted = {
      ...known,
      operation,
      inUnits,
      outUnits,
      minimumOut,
      gasUsd: 0n,
      serviceUsd: 0n,
      impactUsd: lostUsd > 0n ? lostUsd : 0n,
      timeEstimate: 2,
      router: operation === 'swap' ? 'uniswap-v2' : 'wrapped',
    }
    return { quoted, steps }
  }

  /** Moves an amount by a random part of the noise, up or down. */
  const withNoise = (units: bigint): bigint => {
    const noiseBps = realism.current().quoteNoiseBps
    if (noiseBps === 0) return units
    const parts = BigInt(Math.round((realism.random() * 2 - 1) * noiseBps * 1_000))
    return units + (units * parts) / 10_000_000n
  }

  const stepsOf = async (input: QuoteInput, ids: QuoteIds, units: bigint): Promise<Step[]> => {
    if (input.origin.vm === 'svm') {
      const instructions = hasOrder(realism, input)
        ? programInstructions(input, ids.orderId, units)
        : transferInstructions(input, ids.id, units)
      return solanaDepositSteps(input, ids.id, instructions, accountOf(input.origin.id).lookupTables())
    }
    const fees = await feesOf(input)
    const step = evmDepositStep(input, ids, units, fees)
    return withApproval(input, step, { spender: depository, units, fees })
  }

  const quoteDeposit = async (input: QuoteInput, ids: QuoteIds): Promise<Terms> => {
    if (input.input === input.output)
      rejectQuote('UNSUPPORTED_ROUTE', 'Input and output are the same currency')
    const known = await priced(input)
    const from: PricedCurrency = { currency: input.input, priceUsd: known.inPrice }
    const to: PricedCurrency = { currency: input.output, priceUsd: known.outPrice }
    const isInput = input.tradeType === 'EXACT_INPUT'
    const terms = isInput ? termsOfInput(from, to, input.amount) : termsOfOutput(from, to, input.amount)
    const { inUnits, gasUsd, serviceUsd, impactBps } = terms
    if (impactBps > impactBpsMax && !input.ignoresImpact)
      rejectQuote('SWAP_IMPACT_TOO_HIGH', 'The price impact is too high')
    const outUnits = isInput ? withNoise(terms.outUnits) : terms.outUnits
    const inUsd = usdOfUnits(inUnits, input.input, known.inPrice)
    if (outUnits <= 0n || inUnits <= 0n || inUsd < depositUsdMin)
      rejectQuote('AMOUNT_TOO_LOW', 'Amount is too low to cover the fees of the relayer')
    if ((await inventory.available(input.output)) < outUnits)
      rejectQuote('INSUFFICIENT_LIQUIDITY', 'The solver does not have enough liquidity')
    const minimumOut =
      input.tradeType === 'EXACT_OUTPUT' ? outUnits : minimumAfter(outUnits, input.slippageBps)
    const quoted = {
      ...known,
      operation: input.input.symbol === input.output.symbol ? 'bridge' : 'swap',
      inUnits,
      outUnits,
      minimumOut,
      gasUsd,
      serviceUsd,
      impactUsd: (inUsd * impactBps) / 10_000n,
      timeEstimate: 3,
      router: 'relay',
    }
    return { quoted, steps: await stepsOf(input, ids, inUnits) }
  }

  return { swap: quoteSwap, hasOrder: (input) => hasOrder(realism, input), deposit: quoteDeposit }
}
