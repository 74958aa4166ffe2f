import { type CachedValue, createCachedValue } from '#kernel/async/ttl-cache.ts'
import { type Clock, monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { intentHash } from '#kernel/task/signer.ts'
import type { Evm } from './evm.ts'
import {
  type Fees,
  isValidReplacement,
  planEmptyReplacement,
  planReplacement,
  quoteFees,
  type Replacement,
} from './fees.ts'
import {
  type BatchTxOrder,
  isEmptyTx,
  nonceOfTx,
  type PreparedBatchTx,
  parseFees,
  prepareBatch,
  type SignedTx,
  type SponsorKeys,
  signAgain,
  signEmptyTx,
  sponsorKeys,
} from './sponsor-tx.ts'

export type { BatchTxOrder, PreparedBatchTx, SignedTx } from './sponsor-tx.ts'

/** A full exit may also spend the reserve between `exitMinWei` and `balanceMinWei`. */
export type SponsorOptions = { fullExit: boolean }

/** The accounts that pay the gas of all users on one chain; each has its own nonces. */
export type Sponsor = {
  signers: readonly string[]
  /** Returns the native balance of each signer, which is read from the chain at most every few seconds. */
  balances(): Promise<ReadonlyMap<string, bigint>>
  /** Resolves if a signer can pay, and throws `unavailable` otherwise. */
  ready(options?: SponsorOptions): Promise<void>
  /** Returns the signer with the fewest transactions in flight among those that can pay. */
  pick(inFlight: ReadonlyMap<string, number>, options?: SponsorOptions): Promise<string>
  /** Returns the chain's current fees, which are read at most every second; throws `unavailable` above the cap. */
  fees(): Promise<Fees>
  /** Checks the policy receipt and encodes the transaction, so that only the signature waits for the nonce. */
  prepareBatchTx(order: BatchTxOrder): PreparedBatchTx
  /** Returns the next replacement of a transaction at its nonce, or undefined if the fees' cap allows none. */
  replacementOf(raw: string): Promise<Replacement | undefined>
  /**
   * Plans an empty transaction that replaces one which every node refuses. Returns undefined if the refused transaction
   * is already empty, or if its fees may not rise.
   */
  cancellationOf(raw: string): Promise<Replacement | undefined>
  isEmpty(raw: string): boolean
  /** Signs the call of a transaction again with higher fees, or an empty transaction that cancels it. */
  replace(raw: string, signer: string, plan: Replacement): Promise<SignedTx>
  /** Signs the call of a transaction under another nonce, after another transaction used the first one. */
  reassignNonce(raw: string, signer: string, options: { nonce: bigint; fees: Fees }): Promise<SignedTx>
  /** Signs an empty transaction that only uses up a nonce of the signer. */
  fillNonce(signer: string, nonce: bigint): Promise<SignedTx>
  /** Signs empty transactions in place of those that nobody needs any more and that pay too little or are overdue. */
  replaceAbandoned(signer: string, abandoned: readonly AbandonedTx[]): Promise<SignedTx[]>
}
export type AbandonedTx = { raw: string; isOverdue: boolean }

type SponsorDeps = {
  chain: Evm
  secrets: readonly Uint8Array[]
  clock: Clock
  /** The least balance with which a signer pays for a transaction that is no full exit. */
  balanceMinWei: bigint
  /** Returns whether an operator has paused the signer, which then pays for nothing new. */
  isPaused?: (signer: string) => Promise<boolean>
  /** The least balance with which a signer pays for a full exit. */
  exitMinWei?: bigint
}
type SponsorState = {
  deps: Required<SponsorDeps>
  keys: SponsorKeys
  signers: readonly string[]
  /** Counts picks, so that equally busy signers take turns. */
  picks: number
  balances: CachedValue<Map<string, bigint>>
  fees: CachedValue<Fees>
}

const balanceFreshMs = 5_000
/** Fees are read again after this time. The maximum fee of a transaction outlives six full blocks in a row. */
const feesFreshMs = 1_000

export function createSponsor({
  chain,
  secrets,
  clock,
  balanceMinWei,
  isPaused = async () => false,
  exitMinWei = balanceMinWei,
}: SponsorDeps): Sponsor {
  const keys = sponsorKeys(chain.row, secrets)
  const signers = [...keys.byAddress.keys()]
  const deps = { chain, secrets, clock, balanceMinWei, isPaused, exitMinWei }
  const cached = <V>(load: () => Promise<V>, ttlMs: number) =>
    createCachedValue(load, { ttlMs, nowMs: monotonicMs })
  const balances = cached(() => readBalances(chain, signers), balanceFreshMs)
  const fees = cached(() => currentFees(chain), feesFreshMs)
  const state: SponsorState = { deps, keys, signers, picks: 0, balances, fees }
  return {
    signers,
    balances: () => balances.get(),
    ready: async (options) => void (await fundedSigners(state, options)),
    pick: (inFlight, options) => pickSigner(state, inFlight, options),
    fees: () => fees.get(),
    prepareBatchTx: (order) => prepareBatchTx(state, order),
    replacementOf: (raw) => replacementOf(chain, raw),
    cancellationOf: async (raw) => {
      const replacement = isEmptyTx(raw) ? undefined : await replacementOf(chain, raw)
      return replacement && { ...replacement, kind: 'cancel' }
    },
    isEmpty: isEmptyTx,
    replace: (raw, signer, plan) => signReplacement(keys, raw, signer, plan),
    reassignNonce: (raw, signer, options) => signAgain(keys, raw, signer, options),
    fillNonce: async (signer, nonce) => signEmptyTx(keys, signer, nonce, await currentFees(chain)),
    replaceAbandoned: (signer, abandoned) => replaceAbandoned(state, signer, abandoned),
  }
}

async function fundedSigners(
  state: SponsorState,
  { fullExit }: SponsorOptions = { fullExit: false },
): Promise<string[]> {
  const { chain, isPaused, exitMinWei, balanceMinWei } = state.deps
  const known = await state.balances.get()
  const minWei = fullExit ? exitMinWei : balanceMinWei
  const paused = await Promise.all(state.signers.map(isPaused))
  const funded = state.signers.filter(
    (signer, index) => !paused[index] && (known.get(signer) ?? 0n) >= minWei,
  )
  if (funded.length > 0) return funded
  throw new Fault('unavailable', `Sponsored transactions on ${chain.row.displayName} are paused`, {
    extras: { reason: 'sponsor_paused', budget: 'sponsor_balance', owner: 'platform', retry_after: 60 },
  })
}

const readBalances = async (chain: Evm, signers: readonly string[]): Promise<Map<string, bigint>> =>
  new Map(await Promise.all(signers.map(async (signer) => [signer, await chain.balance(signer)] as const)))

async function pickSigner(
  state: SponsorState,
  inFlight: ReadonlyMap<string, number>,
  options?: SponsorOptions,
): Promise<string> {
  const candidates = (await fundedSigners(state, options)).map((signer) => ({
    signer,
    busy: inFlight.get(signer) ?? 0,
  }))
  const fewest = Math.min(...candidates.map(({ busy }) => busy))
  // Equally busy signers take turns, since concurrent picks see the same counts.
  const equals = candidates.filter(({ busy }) => busy === fewest)
  return equals[state.picks++ % equals.length]!.signer
}

async function currentFees(chain: Evm): Promise<Fees> {
  const { head, priorityWei } = await chain.suggestedPriority()
  const quoted = quoteFees(head.baseFeeWei, priorityWei, chain.row.fees)
  if (quoted) return quoted
  throw new Fault('unavailable', `Fees on ${chain.row.displayName} exceed the cap at present`, {
    extras: { reason: 'fees_above_cap' },
  })
}

function prepareBatchTx({ deps, keys }: SponsorState, order: BatchTxOrder): PreparedBatchTx {
  const { intent, receipt } = order
  const covers = receipt.intentHash === intentHash(intent) && receipt.expiresAt > deps.clock.now()
  if (!covers || intent.chainId !== deps.chain.row.id)
    throw new Fault('policy_denied', 'The sponsor signs nothing without a valid policy receipt')
  return prepareBatch(keys, order)
}

async function replacementOf(chain: Evm, raw: string): Promise<Replacement | undefined> {
  const { fees } = chain.row
  const old = parseFees(raw)
  const { head, priorityWei } = await chain.suggestedPriority()
  return planReplacement(old, quoteFees(head.baseFeeWei, priorityWei, fees), fees.capWei)
}

async function signReplacement(
  keys: SponsorKeys,
  raw: string,
  signer: string,
  { kind, fees }: Replacement,
): Promise<SignedTx> {
  if (!isValidReplacement(parseFees(raw), fees))
    throw new Error('a replacement must raise both fees by an eighth')
  const nonce = nonceOfTx(raw)
  return kind === 'cancel'
    ? signEmptyTx(keys, signer, nonce, fees)
    : signAgain(keys, raw, signer, { nonce, fees })
}

async function replaceAbandoned(
  { deps: { chain }, keys }: SponsorState,
  signer: string,
  abandoned: readonly AbandonedTx[],
): Promise<SignedTx[]> {
  const { head, priorityWei: suggestedWei } = await chain.suggestedPriority()
  const present = { baseFeeWei: head.baseFeeWei, suggestedWei }
  const signed = abandoned.map(async ({ raw, isOverdue }) => {
    const fees = planEmptyReplacement({ fees: parseFees(raw), isOverdue }, present, chain.row.fees)
    return fees ? [await signReplacement(keys, raw, signer, { kind: 'cancel', fees })] : []
  })
  return (await Promise.all(signed)).flat()
}
