/** An action on money as the policy evaluates it. `usdMicros` counts against the caps, and is 0n for an exit. */
export type Action = {
  userId: string
  taskId: string
  operation: string
  chainId: string
  tokens: string[]
  recipients: string[]
  usdMicros: bigint
  /** Exits are allowed under a kill switch and beyond spent caps, because they return money to the user. */
  exit: boolean
  /** Who asked for the action; an agent is assumed if this is absent. */
  principal?: Principal
}
/**
 * Who asked for an action. A `person` has approved it; an `app` is connected by a person; an `agent` has a key
 * pair; a `chat` starts by itself what the words of its user name. The `gateway` continues what was allowed before,
 * such as an order that fires, or moves nothing, as in a dry run.
 */
export type Principal = 'person' | 'app' | 'agent' | 'chat' | 'gateway'

/** The terms that a person reads before an approval. Amounts are decimal text. */
export type ActionTerms = {
  /** The action in one sentence in the imperative. */
  text: string
  chain: string | null
  token: string | null
  amount: string | null
  recipient: string | null
  venue: string | null
  asset: string | null
  /** The cost on top of the amount, in a sentence; null if it is unknown. */
  cost: string | null
}
/** The operation that sends funds to addresses of others, which a person has allowed and which are in effect. */
export const transferOperation = 'wallets_transfer'

/** An action whose task does not exist yet. `terms` are set if a person may have to approve it. */
export type PlannedAction = Omit<Action, 'taskId'> & {
  terms?: ActionTerms
  /**
   * The value, in micro-dollars, up to which a person has approved such an action before; null if there is no
   * approval.
   */
  approvedMicros?: bigint | null
  /** The schedule whose run asks for the action, and its budget in micro-dollars. */
  budget?: ScheduleBudget
  /**
   * The loss that the action accepts, in hundredths of a percent of its value; set only if it is greater than the
   * default allows.
   */
  acceptedLossBps?: number
}

/** What a schedule may spend in all its runs together. */
export type ScheduleBudget = { scheduleId: string; micros: bigint }

/**
 * The policy's permission for an action. The statement that accepts the task counts it under the lock of the user's
 * limits, if nothing that could refuse the action has changed.
 */
export type PolicyGrant = {
  version: number
  countedMicros: bigint
  perDayMicros: bigint
  /** The user's daily limit for chats, which counts only if a chat asked for the action. */
  chatPerDayMicros: bigint
  /** The chain or venue whose switch stops the action. */
  chainId: string
  /** True for an exit, which no switch, limit or cap stops. */
  exit: boolean
  /** True if the switch of a single venue does not stop the action. */
  exempt: boolean
}

/** The grant of an exit, which counts nothing against the caps: only the signature asks the policy. */
export const exitGrant = (chainId: string): PolicyGrant => ({
  version: 0,
  countedMicros: 0n,
  perDayMicros: 0n,
  chatPerDayMicros: 0n,
  chainId,
  exit: true,
  exempt: true,
})
