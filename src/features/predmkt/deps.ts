import type { ReserveSpend } from '#durable/accept/reserve-spend.ts'
import type { EventLog } from '#durable/events/event-log.ts'
import type { Ledger } from '#durable/ledger/ledger.ts'
import type { NonceSequences } from '#durable/run/nonces.ts'
import type { Transact } from '#durable/transactions.ts'
import type { EvmBatches } from '#engines/evm-batch/batch.ts'
import type * as swapLeg from '#features/perp/swap-leg.ts'
import type * as swapAfter from '#features/perp/withdraw-swap.ts'
import type { SwapLegs } from '#features/swap/swap-as-leg.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { PredictionVenue } from '#kernel/money/prediction-venue.ts'
import type { TakerFee } from '#kernel/money/prediction-views.ts'
import type { Policy, PredictionSigner } from '#kernel/task/signer.ts'
import type { Admission, JsonObject, TaskKind, Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { VenueKeys } from './store/venue-keys.ts'

export type PredmktLimits = {
  minFundUsd: string
  /** Actions of one user that the relayer is asked for in a day. */
  relaysPerDay: number
}

export type PredmktDeps = {
  db: Queryable
  clock: Clock
  random: Random
  log: Log
  venue: PredictionVenue
  /** The chain on which the venue settles. */
  chain: Evm
  batches: EvmBatches
  policy: Pick<Policy, 'check' | 'authorize' | 'release'>
  /** Whether the token is a listed one of the chain where the venue settles, by its reference in a request. */
  tokenOnChain: (chain: string | number | undefined, token: string, field?: string) => string | undefined
  signer: PredictionSigner
  nonces: Pick<NonceSequences, 'ensure'>
  ledger: Pick<Ledger, 'balance' | 'apply'>
  keys: VenueKeys
  swaps: SwapLegs | undefined
  /** How a swap runs as one leg of another task. */
  swapLeg: Pick<
    typeof swapLeg,
    | 'swapLegSteps'
    | 'swappedOf'
    | 'remainingAfter'
    | 'swapFeesUsd'
    | 'mayPass'
    | 'ageOf'
    | 'swapFieldNames'
    | 'secondLegMs'
    | 'swapStepNames'
  >
  /** How a swap follows a withdrawal. */
  swapAfter: Pick<typeof swapAfter, 'swapAfterWithdrawal' | 'swapNext'>
  reserve: ReserveSpend
  evmAddressOf: (userId: string) => Promise<string>
  changed: (userId: string, chainId: string) => void
  /** Whether money waits, because the database may lack what the venue executed. */
  isOnHold: () => boolean
  transact: Transact
  events: Pick<EventLog, 'add' | 'notify'>
  enqueue: (
    tx: Tx,
    task: { userId: string; kind: TaskKind; input: JsonObject; admission: Admission },
  ) => Promise<string>
  /** What a taker pays for shares at a price, in units of a dollar. */
  takerFeeUnits: (fee: TakerFee | null, priceMicros: bigint, sizeUnits: bigint) => bigint
  limits: PredmktLimits
}
