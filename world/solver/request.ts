/** What the solver stores about one request, from its quote to its end. Amounts are units as decimal text. */
export type Hex = `0x${string}`

export type Status =
  | 'waiting'
  | 'depositing'
  | 'pending'
  | 'submitted'
  | 'delayed'
  | 'success'
  | 'refund'
  | 'failure'

export type Deposit = {
  /** Position of the event within its transaction, which does not change when it is mined again. */
  key: string
  /** The id of the order where the quote had one, and that of the request otherwise. */
  requestId: Hex
  chainId: number
  from: string
  currency: string
  units: string
  txHash: string
  block: number
  seenMs: number
}

/** One version of the signed bytes of a payment. */
export type Attempt = { raw: string; hash: string; nonce?: number; lastValidBlockHeight?: number }

export type Payout = {
  type: 'fill' | 'refund'
  /** Refunds on EVM chains come out of the contract for deposits. */
  source: 'wallet' | 'depository'
  chainId: number
  currency: string
  units: string
  to: string
  /** Stored before they are sent; only the last attempt can still land. */
  attempts: Attempt[]
  isSent: boolean
}

/** What a solver that does not do as it quoted pays next, and what it says then. */
export type PlannedStep = {
  type: 'fill' | 'refund'
  currency: string
  /** 0: it only says something. */
  units: string
  /** After the step before it. */
  afterMs: number
  status: Status
  /** Which of its transactions it names from then on. */
  names: 'all' | 'last' | 'none'
  /** A transaction of somebody else, which it names as its own. */
  foreignTx?: string
  failReason?: string
  refundFailReason?: string
}
export type PayoutPlan = { steps: PlannedStep[]; sinceMs: number; paidTxs: ChainTx[] }

export type Transition = { status: Status; atMs: number; inTxHashes: string[]; txHashes: string[] }
export type ChainTx = { hash: string; chainId: number; block: number; atMs: number }

export type SolverRequest = {
  id: Hex
  /** What a deposit at the contract names: an id of its own, which only the quote joins to the request. */
  orderId?: Hex
  /** `swap`: the user's own transaction at a pool; `deposit`: a deposit that the solver fills; `refund`: one without a quote. */
  route: 'swap' | 'deposit' | 'refund'
  parentId?: Hex
  user: string
  recipient: string
  refundTo?: string
  referrer?: string
  originChainId: number
  originCurrency: string
  destinationChainId: number
  destinationCurrency: string
  quotedIn: string
  quotedOut: string
  minimumOut: string
  slippageBps: number
  createdMs: number
  expiresMs: number
  status: Status
  history: Transition[]
  failReason?: string
  refundFailReason?: string
  deposit?: Deposit
  /** The deposit has enough confirmations, and may be filled from `fillAfterMs` on. */
  confirmedMs?: number
  fillAfterMs?: number
  /** The deposit was seen and is not on the chain any more. */
  vanishedMs?: number
  payout?: Payout
  plan?: PayoutPlan
  /** Success was announced for a fill that is never sent; the refund follows at this time. */
  retractAtMs?: number
  inTxs: ChainTx[]
  outTxs: ChainTx[]
}

export const isEnded = ({ status, retractAtMs, plan }: SolverRequest): boolean =>
  (status === 'success' || status === 'refund' || status === 'failure') &&
  retractAtMs === undefined &&
  plan === undefined

/** Adds the new status to the history, so that a lagging reader can be shown an earlier one. */
export const withStatus = (request: SolverRequest, status: Status, nowMs: number): SolverRequest => {
  const entry = {
    status,
    atMs: nowMs,
    inTxHashes: request.inTxs.map(({ hash }) => hash),
    txHashes: request.outTxs.map(({ hash }) => hash),
  }
  return { ...request, status, history: [...request.history, entry] }
}

/** The request after the first step of its plan, which has paid with this transaction. */
export function afterStep(request: SolverRequest, paid: ChainTx | undefined, nowMs: number): SolverRequest {
  const { plan, payout: _paid, ...rest } = request
  const [step, ...steps] = plan!.steps
  const foreign = step!.foreignTx
    ? [{ hash: step!.foreignTx, chainId: request.destinationChainId, block: 0, atMs: nowMs }]
    : []
  const paidTxs = [...plan!.paidTxs, ...foreign, ...(paid ? [paid] : [])]
  const outTxs = { all: paidTxs, last: paidTxs.slice(-1), none: [] }[step!.names]
  const next = steps.length === 0 ? rest : { ...rest, plan: { steps, sinceMs: nowMs, paidTxs } }
  const { failReason, refundFailReason } = step!
  const reasons = {
    ...(failReason !== undefined && { failReason }),
    ...(refundFailReason !== undefined && { refundFailReason }),
  }
  return withStatus({ ...next, ...reasons, outTxs }, step!.status, nowMs)
}
