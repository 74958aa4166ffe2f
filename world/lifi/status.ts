import { type Log, parseEventLogs } from 'viem'
import { artifact } from '#world/evm/artifact.ts'
import { lifiDiamond } from '#world/evm/chains.ts'
import { requireChain, requireCurrency } from '#world/solver/chains.ts'
import type { Connections } from '#world/solver/connections.ts'
import { formatUsd, usdOfUnits } from '#world/solver/money.ts'
import type { Prices } from '#world/solver/prices.ts'
import type { RealismControl } from '#world/solver/realism.ts'
import type { Hex, SolverRequest } from '#world/solver/request.ts'
import { visibleTransition } from '#world/solver/request-view.ts'
import type { Store } from '#world/solver/store.ts'
import { invalid } from './errors.ts'
import { bridgeTool, chainNamed, exchangeTool, lifiChains, tokenView } from './views.ts'

/** The status of a transfer, asked by the hash of its transaction or by its transaction id. */

type Receipt = { status: Hex; logs: Log[]; gasUsed: Hex; effectiveGasPrice: Hex } | null
type Found = { chainId: number; hash: string; receipt: NonNullable<Receipt> }
type Event = { id: Hex; toAmount?: bigint }
type Word = { status: string; substatus: string; substatusMessage: string }

export type StatusDeps = {
  store: Store
  connections: Connections
  prices: Prices
  realism: RealismControl
  nowMs: () => number
}

const pending = (substatus: string, substatusMessage: string): Word => ({
  status: 'PENDING',
  substatus,
  substatusMessage,
})

const failedSubstatus: Readonly<Record<string, string>> = {
  SLIPPAGE: 'SLIPPAGE_EXCEEDED',
  TTL_EXPIRED: 'EXPIRED',
}

/** LI.FI's words for what became of a bridged deposit. */
const wordOf = ({ failReason, payout, vanishedMs }: SolverRequest, shown: string): Word => {
  const isRefunding = payout?.type === 'refund'
  if (shown === 'success')
    return { status: 'DONE', substatus: 'COMPLETED', substatusMessage: 'The transfer is complete.' }
  if (shown === 'refund')
    return { status: 'DONE', substatus: 'REFUNDED', substatusMessage: 'The tokens were refunded.' }
  if (shown === 'failure')
    return {
      status: 'FAILED',
      substatus: failedSubstatus[failReason ?? ''] ?? 'UNKNOWN_FAILED_ERROR',
      substatusMessage: 'The transfer failed.',
    }
  if (isRefunding) return pending('REFUND_IN_PROGRESS', 'A refund is in progress.')
  if (shown === 'waiting' || shown === 'depositing' || vanishedMs !== undefined)
    return pending('WAIT_SOURCE_CONFIRMATIONS', 'Waiting for confirmations of the source chain.')
  return pending('WAIT_DESTINATION_TRANSACTION', 'Waiting for the transaction on the destination chain.')
}

const transactionView = async (
  { connections, prices, nowMs }: StatusDeps,
  side: { chainId: number; address: string; units: string; hash: string },
) => {
  const currency = requireCurrency(side.chainId, side.address)
  const price = (await prices.priceOf(currency)) ?? 0n
  return {
    txHash: side.hash,
    txLink: `${connections.publicUrl(side.chainId)}/tx/${side.hash}`,
    chainId: side.chainId,
    amount: side.units,
    token: await tokenView(prices, currency),
    amountUSD: formatUsd(usdOfUnits(BigInt(side.units), currency, price)),
    gasToken: await tokenView(prices, requireChain(side.chainId).native),
    gasPrice: '0',
    gasUsed: '0',
    gasAmount: '0',
    gasAmountUSD: '0',
    timestamp: Math.floor(nowMs() / 1_000),
  }
}

export const createStatus = (deps: StatusDeps) => {
  const { store, connections, realism, nowMs } = deps
  const { abi } = artifact('LifiDiamond')

  const receiptOf = async (chainId: number, hash: string): Promise<Found | undefined> => {
    const receipt = (await connections
      .rpc(chainId)
      .call('eth_getTransactionReceipt', [hash])
      .catch(() => null)) as Receipt
    return receipt ? { chainId, hash, receipt } : undefined
  }

  const search = async (hash: string, fromChain: string | null): Promise<Found | undefined> => {
    const chain = fromChain === null ? undefined : chainNamed(fromChain)
    if (fromChain !== null && !chain) return invalid('/fromChain must be equal to one of the allowed values')
    const found = await Promise.all((chain ? [chain] : lifiChains).map(({ id }) => receiptOf(id, hash)))
    return found.find((each) => each !== undefined)
  }

  const eventOf = ({ logs }: Found['receipt']): Event | undefined => {
    const own = logs.filter(({ address }) => address.toLowerCase() === lifiDiamond.toLowerCase())
    const [event] = parseEventLogs({ abi, logs: own })
    if (event?.eventName === 'LiFiGenericSwapCompleted') {
      const { transactionId, toAmount } = event.args as unknown as { transactionId: Hex; toAmount: bigint }
      return { id: transactionId, toAmount }
    }
    if (event?.eventName !== 'LiFiTransferStarted') return undefined
    const { bridgeData } = event.args as unknown as { bridgeData: { transactionId: Hex } }
    return { id: bridgeData.transactionId }
  }

  const baseOf = (hash: string, chainId: number | undefined) => ({
    tool: bridgeTool.key,
    sending: { txHash: hash, txLink: '', ...(chainId !== undefined && { chainId }) },
    receiving: { ...(chainId !== undefined && { chainId }) },
  })

  const fullView = async (
    request: SolverRequest,
    {
      hash,
      word,
      received,
    }: { hash: string; word: Word; received: { units: string; hash: string } | undefined },
  ) => {
    const { destinationChainId, destinationCurrency, payout } = request
    const isRefund = word.substatus === 'REFUNDED' && payout !== undefined
    const receiving = isRefund
      ? { chainId: payout.chainId, address: payout.currency, units: payout.units }
      : { chainId: destinationChainId, address: destinationCurrency, units: received?.units ?? '0' }
    const isShown = isRefund || received !== undefined
    return {
      transactionId: request.id,
      sending: await transactionView(deps, {
        chainId: request.originChainId,
        address: request.originCurrency,
        units: request.quotedIn,
        hash,
      }),
      receiving: isShown
        ? await transactionView(deps, { ...receiving, hash: received?.hash ?? hash })
        : { chainId: destinationChainId },
      feeCosts: [],
      lifiExplorerLink: `https://scan.li.fi/tx/${hash}`,
      fromAddress: request.user,
      toAddress: request.recipient,
      tool: request.route === 'swap' ? exchangeTool.key : bridgeTool.key,
      metadata: { integrator: 'lifi-api' },
      ...word,
    }
  }

  const bridged = async (request: SolverRequest, hash: string) => {
    const { status } = visibleTransition(request, realism, nowMs())
    const word = wordOf(request, status)
    const [out] = request.outTxs
    const isPaid = word.substatus === 'COMPLETED' || word.substatus === 'REFUNDED'
    const received =
      isPaid && out ? { units: request.payout?.units ?? request.quotedOut, hash: out.hash } : undefined
    return fullView(request, { hash, word, received })
  }

  return async (query: URLSearchParams) => {
    const asked = query.get('txHash') ?? invalid("must have required property 'txHash'")
    if (!/^0x[0-9a-fA-F]{64}$/.test(asked)) return invalid('/txHash is not a transaction hash')
    const stored = store.find(asked.toLowerCase())
    const [known] = stored?.inTxs ?? []
    if (stored?.route === 'deposit' && known) return bridged(stored, known.hash)
    const found = await search(asked, query.get('fromChain'))
    if (!found) return { ...baseOf(asked, undefined), status: 'NOT_FOUND' }
    if (found.receipt.status !== '0x1')
      return {
        ...baseOf(asked, found.chainId),
        status: 'FAILED',
        substatus: 'UNKNOWN_FAILED_ERROR',
        substatusMessage: 'The transaction was reverted.',
      }
    const event = eventOf(found.receipt)
    const request = event && store.find(event.id)
    if (!event || !request) return { ...baseOf(asked, found.chainId), status: 'INVALID' }
    if (event.toAmount === undefined) return bridged(request, asked)
    const word = { status: 'DONE', substatus: 'COMPLETED', substatusMessage: 'The transfer is complete.' }
    return fullView(request, { hash: asked, word, received: { units: String(event.toAmount), hash: asked } })
  }
}
