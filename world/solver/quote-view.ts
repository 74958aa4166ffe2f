import { type Currency, type SolverChain, usdcOn } from './chains.ts'
import { amountView, formatDecimal, formatUsd, unitsOfUsd, usdOfUnits } from './money.ts'
import type { QuoteInput } from './quote-input.ts'
import type { Hex } from './request.ts'
import type { Step } from './steps.ts'

/** A quote as it is answered and stored. */
export type Quoted = {
  operation: string
  inUnits: bigint
  outUnits: bigint
  minimumOut: bigint
  inPrice: bigint
  outPrice: bigint
  originGasUsd: bigint
  /** The native coin of the origin chain. */
  nativePrice: bigint
  gasUsd: bigint
  serviceUsd: bigint
  impactUsd: bigint
  timeEstimate: number
  router: string
}

const percentOf = (part: bigint, whole: bigint): string =>
  whole === 0n ? '0' : formatDecimal((part * 10_000n) / whole, 2)

const impact = (usd: bigint, whole: bigint) => ({ usd: formatUsd(usd), percent: percentOf(usd, whole) })

const feesOf = ({ origin, input }: QuoteInput, quoted: Quoted) => {
  const fee = (currency: Currency, usd: bigint, price: bigint) =>
    amountView(currency, unitsOfUsd(usd, currency, price), price)
  const { gasUsd, serviceUsd, inPrice } = quoted
  return {
    gas: fee(origin.native, quoted.originGasUsd, quoted.nativePrice),
    relayer: fee(input, gasUsd + serviceUsd, inPrice),
    relayerGas: fee(input, gasUsd, inPrice),
    relayerService: fee(input, serviceUsd, inPrice),
    app: fee(input, 0n, inPrice),
    subsidized: fee(usdcOn(origin), 0n, 10n ** 18n),
  }
}

const routeOf = (chain: SolverChain, quoted: Quoted, input: QuoteInput) => ({
  inputCurrency: amountView(input.input, quoted.inUnits, quoted.inPrice),
  outputCurrency: amountView(input.output, quoted.outUnits, quoted.outPrice, quoted.minimumOut),
  router: quoted.router,
  includedSwapSources: chain.vm === 'evm' && quoted.router === 'uniswap-v2' ? ['uniswap-v2'] : [],
})

const slippageOf = ({ slippageBps, output }: QuoteInput, { outUnits, minimumOut, outPrice }: Quoted) => {
  const percent = formatDecimal(BigInt(slippageBps), 2)
  const units = outUnits - minimumOut
  return {
    total: percent,
    origin: { usd: '0', value: '0', percent: '0' },
    destination: { usd: formatUsd(usdOfUnits(units, output, outPrice)), value: String(units), percent },
  }
}

/** The answer to a quote, in Relay's form. */
export const quoteView = (input: QuoteInput, quoted: Quoted, steps: Step[]) => {
  const { inUnits, outUnits, minimumOut, inPrice, outPrice } = quoted
  const inUsd = usdOfUnits(inUnits, input.input, inPrice)
  const outUsd = usdOfUnits(outUnits, input.output, outPrice)
  const lost = outUsd - inUsd
  const rate =
    (outUnits * 10n ** BigInt(input.input.decimals + 18)) / (inUnits * 10n ** BigInt(input.output.decimals))
  const isSameChain = input.origin === input.destination
  return {
    steps,
    fees: feesOf(input, quoted),
    details: {
      operation: quoted.operation,
      sender: input.user,
      recipient: input.recipient,
      currencyIn: amountView(input.input, inUnits, inPrice),
      currencyOut: amountView(input.output, outUnits, outPrice, minimumOut),
      refundCurrency: amountView(input.input, inUnits, inPrice),
      totalImpact: impact(lost, inUsd),
      swapImpact: impact(-quoted.impactUsd, inUsd),
      expandedPriceImpact: {
        swap: { usd: formatUsd(-quoted.impactUsd) },
        execution: { usd: formatUsd(-quoted.gasUsd) },
        relay: { usd: formatUsd(-quoted.serviceUsd) },
        app: { usd: '0' },
      },
      rate: formatDecimal(rate, 18),
      slippageTolerance: slippageOf(input, quoted),
      timeEstimate: quoted.timeEstimate,
      isFixedRate: false,
      route: {
        origin: routeOf(input.origin, quoted, input),
        ...(!isSameChain && { destination: routeOf(input.destination, quoted, input) }),
      },
    },
  }
}

/** The order of a deposit at the contract: it has an id of its own, which the deposit names. */
export const protocolView = ({ origin, input }: QuoteInput, { inUnits }: Quoted, orderId: Hex) => ({
  protocol: {
    v2: {
      orderId,
      hubType: 'onchain' as const,
      paymentDetails: {
        chainId: origin.name,
        depository: origin.depository,
        currency: input.address,
        amount: String(inUnits),
      },
    },
  },
})
