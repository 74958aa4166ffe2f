import { currencyAt, requireChain } from './chains.ts'
import { amountView } from './money.ts'
import type { Prices } from './prices.ts'
import type { RealismControl } from './realism.ts'
import type { ChainTx, SolverRequest, Transition } from './request.ts'

/** The transition that a reader is shown: the last one, or an earlier one where this reader's node lags. */
export const visibleTransition = (
  request: SolverRequest,
  realism: RealismControl,
  nowMs: number,
): Transition => {
  const { statusLag, statusBack } = realism.current()
  const untilMs = nowMs - realism.lagMs(statusLag)
  const seen = request.history.filter(({ atMs }, index) => index === 0 || atMs <= untilMs)
  const shown = realism.isHit(statusBack) ? (seen.at(-2) ?? seen.at(-1)) : seen.at(-1)
  return shown ?? { status: request.status, atMs: request.createdMs, inTxHashes: [], txHashes: [] }
}

/** The answer of the status endpoint. */
export const statusView = (request: SolverRequest, realism: RealismControl, nowMs: number) => {
  const { status, atMs, inTxHashes, txHashes } = visibleTransition(request, realism, nowMs)
  return {
    status,
    ...(status === 'failure' && request.failReason !== undefined && { details: request.failReason }),
    inTxHashes,
    txHashes,
    updatedAt: atMs,
    originChainId: request.originChainId,
    destinationChainId: request.destinationChainId,
    quoteCreatedAt: request.createdMs,
  }
}

const txView = ({ hash, chainId, block, atMs }: ChainTx) => ({
  txHash: hash,
  fee: '0',
  feeUsd: '0',
  block,
  type: 'onchain',
  chainId,
  timestamp: Math.floor(atMs / 1000),
  status: 'success' as const,
})

const amountOf = async (
  prices: Prices,
  chainId: number,
  address: string,
  { units, minimum }: { units: string; minimum?: string },
) => {
  const currency = currencyAt(requireChain(chainId), address)
  if (!currency) return undefined
  const price = (await prices.priceOf(currency)) ?? 0n
  return amountView(currency, BigInt(units), price, BigInt(minimum ?? units))
}

/** What was quoted, and what was paid in and out. */
const routeOf = async (prices: Prices, request: SolverRequest) => {
  const { deposit, originChainId, originCurrency, destinationChainId, destinationCurrency, payout } = request
  const { quotedIn, quotedOut, minimumOut } = request
  const input = await amountOf(prices, originChainId, originCurrency, { units: quotedIn })
  const output = await amountOf(prices, destinationChainId, destinationCurrency, {
    units: quotedOut,
    minimum: minimumOut,
  })
  const received =
    deposit && (await amountOf(prices, deposit.chainId, deposit.currency, { units: deposit.units }))
  const paid =
    payout?.type === 'fill'
      ? await amountOf(prices, payout.chainId, payout.currency, { units: payout.units })
      : undefined
  const sides = (inputCurrency: typeof input, outputCurrency: typeof output) => ({
    origin: { inputCurrency: inputCurrency ?? null, router: 'relay' },
    destination: { outputCurrency: outputCurrency ?? null, router: 'relay' },
  })
  return { quoted: sides(input, output), actual: received ? sides(received, paid) : null }
}

/** A request as the list of requests has it. */
export const requestView = async (
  request: SolverRequest,
  deps: { prices: Prices; realism: RealismControl; nowMs: number },
) => {
  const { prices, realism, nowMs } = deps
  const { status, atMs, txHashes } = visibleTransition(request, realism, nowMs)
  const isFailed = status === 'refund' || status === 'failure'
  const { payout } = request
  const refunded =
    status === 'refund' && payout?.type === 'refund'
      ? await amountOf(prices, payout.chainId, payout.currency, { units: payout.units })
      : undefined
  return {
    id: request.id,
    ...(request.orderId !== undefined && { protocol: { orderId: request.orderId } }),
    status,
    user: request.user,
    recipient: request.recipient,
    sender: request.user,
    refundTo: request.refundTo ?? null,
    data: {
      slippageTolerance: String(request.slippageBps),
      failReason: isFailed ? (request.failReason ?? 'UNKNOWN') : ('N/A' as const),
      refundFailReason: (isFailed && request.refundFailReason) || null,
      inTxs: request.inTxs.map(txView),
      outTxs: request.outTxs.filter(({ hash }) => txHashes.includes(hash)).map(txView),
      route: await routeOf(prices, request),
      refundCurrencyData: refunded ?? null,
    },
    createdAt: new Date(request.createdMs).toISOString(),
    updatedAt: new Date(atMs).toISOString(),
  }
}
