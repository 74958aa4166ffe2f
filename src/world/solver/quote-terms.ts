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
  type Step,
  solanaDepositSteps,
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
  /** A deposit that the solver fills from its inventory. */
  deposit: (input: QuoteInput, id: Hex) => Promise<Terms>
}

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
    units: bigint,
    fees: EvmFees,
  ): Promise<Step[]> => {
    const { origin, user, input: currency } = input
    if (currency.metadata.isNative) return [step]
    const spender = step.id === 'swap' ? (origin.evm?.router ?? '') : depository
    const call = allowanceCall(currency, user, spender)
    const allowed = BigInt(String(await connections.rpc(origin.id).call('eth_call', [call, 'latest'])))
    if (allowed >= units) return [step]
    return [evmStep(input, step.requestId, approvalOf(currency, spender, units), fees), step]
  }

  const quoteSwap = async (input: QuoteInput, id: Hex, expiresMs: number): Promise<Terms> => {
    const route = await routeSwap(connections.rpc(input.origin.id), input, id, expiresMs)
    const fees = await feesOf(input)
    const { to, data, value, gas } = route
    const call = { id: 'swap', to, data, value, gas } as const
    const step = evmStep(input, id, call, fees)
    const steps = route.operation === 'swap' ? await withApproval(input, step, route.inUnits, fees) : [step]
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

  const stepsOf = async (input: QuoteInput, id: Hex, units: bigint): Promise<Step[]> => {
    if (input.origin.vm === 'svm') {
      const tables = accountOf(input.origin.id).lookupTables()
      return solanaDepositSteps(input, id, units, tables)
    }
    const fees = await feesOf(input)
    return withApproval(input, evmDepositStep(input, id, units, fees), units, fees)
  }

  const quoteDeposit = async (input: QuoteInput, id: Hex): Promise<Terms> => {
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
    return { quoted, steps: await stepsOf(input, id, inUnits) }
  }

  return { swap: quoteSwap, deposit: quoteDeposit }
}
