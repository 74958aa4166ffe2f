import { randomBytes, randomUUID } from 'node:crypto'
import { encodeFunctionData, pad } from 'viem'
import { artifact } from '#world/evm/artifact.ts'
import { lifiDiamond } from '#world/evm/chains.ts'
import { priceSymbol } from '#world/prices/book.ts'
import type { ChainAccount } from '#world/solver/chain-account.ts'
import type { Connections } from '#world/solver/connections.ts'
import { QuoteError } from '#world/solver/errors.ts'
import type { Inventory } from '#world/solver/inventory.ts'
import { formatUsd, usdOfUnits } from '#world/solver/money.ts'
import type { Prices } from '#world/solver/prices.ts'
import { minimumAfter, termsOfInput } from '#world/solver/pricing.ts'
import type { RealismControl } from '#world/solver/realism.ts'
import type { Hex, SolverRequest } from '#world/solver/request.ts'
import type { Store } from '#world/solver/store.ts'
import { routeSwap } from '#world/solver/uniswap.ts'
import { codes, LifiError, noQuote } from './errors.ts'
import { type LifiQuoteInput, readQuoteInput } from './quote-input.ts'
import { bridgeTool, exchangeTool, tokenView } from './views.ts'

const quoteMs = 600_000
const zeroAddress = '0x0000000000000000000000000000000000000000'
const bridgeGas = 220_000n
/** Beside the exchange's own. */
const swapGas = 180_000n
const { abi } = artifact('LifiDiamond')

export type LifiQuoteDeps = {
  store: Store
  accountOf: (chainId: number) => ChainAccount
  connections: Connections
  inventory: Inventory
  prices: Prices
  realism: RealismControl
  serviceBps: () => bigint
  nowMs: () => number
}

type Call = { data: Hex; value: bigint; gas: bigint }
type Terms = {
  tool: typeof bridgeTool
  type: 'swap' | 'cross'
  outUnits: bigint
  minimumOut: bigint
  feeUnits: bigint
  executionDuration: number
  call: Call
}

const hex = (value: bigint): Hex => `0x${value.toString(16)}`

type Asked = { input: LifiQuoteInput; id: Hex; expiresMs: number }

const formOf = (...ends: { metadata: { isNative: boolean } }[]): string =>
  ends.map(({ metadata }) => (metadata.isNative ? 'Native' : 'ERC20')).join('To')

/** The exchange pays the contract, which pays the recipient. */
const swapTerms = async ({ connections }: LifiQuoteDeps, { input, id, expiresMs }: Asked): Promise<Terms> => {
  const { origin, input: from, output: to, recipient, slippageBps, integrator } = input
  if (input.exchanges.length > 0 && !input.exchanges.includes(exchangeTool.key)) return noQuote()
  const owner = lifiDiamond.toLowerCase()
  const asked = {
    ...input,
    user: owner,
    recipient: owner,
    tradeType: 'EXACT_INPUT',
    ttlSeconds: quoteMs / 1_000,
    ignoresImpact: false,
  } as const
  const route = await routeSwap(connections.rpc(origin.id), asked, {
    requestId: id,
    expiresMs,
    form: 'pool',
  })
  const swap = {
    callTo: route.to,
    approveTo: route.to,
    sendingAssetId: from.address,
    receivingAssetId: to.address,
    fromAmount: route.inUnits,
    callData: route.data,
    requiresDeposit: true,
  }
  const minimumOut = minimumAfter(route.outUnits, slippageBps)
  const args = [id, integrator, '', recipient, minimumOut, [swap]]
  return {
    tool: exchangeTool,
    type: 'swap',
    outUnits: route.outUnits,
    minimumOut,
    feeUnits: 0n,
    executionDuration: 0,
    call: {
      data: encodeFunctionData({ abi, functionName: `swapTokensMultipleV3${formOf(from, to)}`, args }),
      value: route.value,
      gas: (route.gas ?? 60_000n) + swapGas,
    },
  }
}

const withNoise = (realism: RealismControl, units: bigint): bigint => {
  const noiseBps = realism.current().quoteNoiseBps
  const parts = BigInt(Math.round((realism.random() * 2 - 1) * noiseBps * 1_000))
  return noiseBps === 0 ? units : units + (units * parts) / 10_000_000n
}

/** The bridge moves a token to its like on another chain. */
const bridgeTerms = async (
  { inventory, prices, realism, serviceBps, nowMs }: LifiQuoteDeps,
  { input, id, expiresMs }: Asked,
): Promise<Terms> => {
  const { origin, destination, input: from, output: to, amount, recipient, user, slippageBps } = input
  if (input.bridges.length > 0 && !input.bridges.includes(bridgeTool.key)) return noQuote()
  if (priceSymbol(from.symbol) !== priceSymbol(to.symbol)) return noQuote()
  const terms = termsOfInput(
    { currency: from, priceUsd: await prices.requirePrice(from) },
    { currency: to, priceUsd: await prices.requirePrice(to) },
    amount,
    serviceBps(),
  )
  const outUnits = withNoise(realism, terms.outUnits)
  if (outUnits <= 0n || (await inventory.available(to)) < outUnits) return noQuote()
  const minimumOut = minimumAfter(outUnits, slippageBps)
  const nowSeconds = Math.floor(nowMs() / 1_000)
  const bridgeData = {
    transactionId: id,
    bridge: bridgeTool.key,
    integrator: input.integrator,
    referrer: zeroAddress,
    sendingAssetId: from.address,
    receiver: recipient,
    minAmount: amount,
    destinationChainId: BigInt(destination.id),
    hasSourceSwaps: false,
    hasDestinationCall: false,
  }
  const acrossData = {
    receiverAddress: pad(recipient as Hex),
    refundAddress: pad(user as Hex),
    sendingAssetId: pad(from.address as Hex),
    receivingAssetId: pad(to.address as Hex),
    outputAmount: minimumOut,
    outputAmountMultiplier: 10n ** 18n - (serviceBps() * 10n ** 18n) / 10_000n,
    exclusiveRelayer: pad(zeroAddress),
    quoteTimestamp: nowSeconds,
    fillDeadline: Math.floor(expiresMs / 1_000),
    exclusivityParameter: 0,
    message: '0x',
  }
  const perUnit = 10n ** BigInt(Math.abs(from.decimals - to.decimals))
  const alike = from.decimals >= to.decimals ? outUnits * perUnit : outUnits / perUnit
  return {
    tool: bridgeTool,
    type: 'cross',
    outUnits,
    minimumOut,
    feeUnits: amount > alike ? amount - alike : 0n,
    executionDuration: origin.id === 1 ? 30 : 4,
    call: {
      data: encodeFunctionData({
        abi,
        functionName: 'startBridgeTokensViaAcrossV4',
        args: [bridgeData, acrossData],
      }),
      value: from.metadata.isNative ? amount : 0n,
      gas: bridgeGas,
    },
  }
}

const quoteView = async ({ connections, prices }: LifiQuoteDeps, { input, id }: Asked, terms: Terms) => {
  const { origin, input: from, output: to, amount, user } = input
  const [fromToken, toToken] = await Promise.all([tokenView(prices, from), tokenView(prices, to)])
  const usd = async (currency: typeof from, units: bigint) =>
    formatUsd(usdOfUnits(units, currency, (await prices.priceOf(currency)) ?? 0n))
  const gasPrice = BigInt(String(await connections.rpc(origin.id).call('eth_gasPrice')))
  const gasUnits = terms.call.gas * gasPrice
  const action = {
    fromToken,
    fromAmount: String(amount),
    toToken,
    fromChainId: origin.id,
    toChainId: input.destination.id,
    slippage: input.slippageBps / 10_000,
    fromAddress: user,
    toAddress: input.recipient,
  }
  const feeCosts =
    terms.feeUnits === 0n
      ? []
      : [
          {
            name: 'Relayer Fee',
            description: 'Fee of the relayer that fills the transfer',
            percentage: String(Number(terms.feeUnits) / Number(amount)),
            token: fromToken,
            amount: String(terms.feeUnits),
            amountUSD: await usd(from, terms.feeUnits),
            included: true,
          },
        ]
  const estimate = {
    tool: terms.tool.key,
    approvalAddress: lifiDiamond,
    fromAmount: String(amount),
    toAmount: String(terms.outUnits),
    toAmountMin: String(terms.minimumOut),
    fromAmountUSD: await usd(from, amount),
    toAmountUSD: await usd(to, terms.outUnits),
    feeCosts,
    gasCosts: [
      {
        type: 'SEND',
        price: String(gasPrice),
        estimate: String(terms.call.gas),
        limit: String((terms.call.gas * 5n) / 4n),
        amount: String(gasUnits),
        amountUSD: await usd(origin.native, gasUnits),
        token: await tokenView(prices, origin.native),
      },
    ],
    executionDuration: terms.executionDuration,
  }
  const { key: tool } = terms.tool
  const inner = { id: randomUUID(), type: terms.type, action, estimate, tool, toolDetails: terms.tool }
  return {
    type: 'lifi',
    id: `${randomUUID()}:0`,
    tool,
    toolDetails: terms.tool,
    action,
    estimate,
    includedSteps: [inner],
    integrator: input.integrator,
    transactionRequest: {
      value: hex(terms.call.value),
      to: lifiDiamond,
      data: terms.call.data,
      from: user,
      chainId: origin.id,
      gasPrice: hex(gasPrice),
      gasLimit: hex((terms.call.gas * 5n) / 4n),
    },
    transactionId: id,
  }
}

export const createLifiQuotes = (deps: LifiQuoteDeps) => {
  const { store, accountOf, nowMs } = deps
  return async (query: URLSearchParams) => {
    const input = readQuoteInput(query)
    const { origin, destination, input: from, output: to } = input
    if (origin === destination && from === to) return noQuote()
    const ready = [...new Set([origin, destination])].map((chain) => accountOf(chain.id).prepare())
    await Promise.all(ready).catch((cause: Error) => {
      throw Object.assign(new LifiError(500, codes.server, 'The chain does not answer'), { cause })
    })
    const id: Hex = `0x${randomBytes(32).toString('hex')}`
    const createdMs = nowMs()
    const expiresMs = createdMs + quoteMs
    const isSwap = origin === destination
    const asked = { input, id, expiresMs }
    const terms = await (isSwap ? swapTerms(deps, asked) : bridgeTerms(deps, asked)).catch(
      (error: unknown) => {
        if (error instanceof QuoteError) return noQuote()
        throw error
      },
    )
    const request: SolverRequest = {
      id,
      route: isSwap ? 'swap' : 'deposit',
      user: input.user,
      recipient: input.recipient,
      refundTo: input.user,
      originChainId: origin.id,
      originCurrency: from.address,
      destinationChainId: destination.id,
      destinationCurrency: to.address,
      quotedIn: String(input.amount),
      quotedOut: String(terms.outUnits),
      minimumOut: String(terms.minimumOut),
      slippageBps: input.slippageBps,
      createdMs,
      expiresMs,
      status: 'waiting',
      history: [{ status: 'waiting', atMs: createdMs, inTxHashes: [], txHashes: [] }],
      inTxs: [],
      outTxs: [],
    }
    store.save(request)
    return quoteView(deps, asked, terms)
  }
}
