/** An action on money as the policy evaluates it. `usdMicros` counts against the caps; an exit has 0n. */
export type Action = {
  userId: string
  taskId: string
  operation: string
  chainId: string
  tokens: string[]
  recipients: string[]
  usdMicros: bigint
  /** Exits are allowed under a kill switch and beyond spent caps: they return money to the user. */
  exit: boolean
  /** Absent: an agent. */
  principal?: Principal
}
/**
 * Who asked: a person who has approved it; an app that a person has connected; an agent with a key pair; a chat, which
 * starts by itself what the words of its user name; or the gateway itself, which goes on with what was allowed before,
 * such as an order that fires, or moves nothing, as a dry run.
 */
export type Principal = 'person' | 'app' | 'agent' | 'chat' | 'gateway'

/** What a person reads before an approval. Amounts are decimal text. */
export type ActionTerms = {
  /** One sentence in the imperative. */
  text: string
  chain: string | null
  token: string | null
  amount: string | null
  recipient: string | null
  venue: string | null
  /** What is bought or traded. */
  asset: string | null
  /** What it costs beside the amount, in a sentence; null: nothing is known of that. */
  cost: string | null
}
/** Sends to others: only to effective recipients of the user. */
export const transferOperation = 'wallets_transfer'

/** An action whose task does not exist yet. `terms`: of an action that a person may have to approve. */
export type PlannedAction = Omit<Action, 'taskId'> & {
  terms?: ActionTerms
  /** The part of its value that may be lost, in hundredths of a percent; absent: no more than the default. */
  acceptedLossBps?: number
}

/**
 * What the policy has allowed, as data. The accepting statement counts it under the lock of the user's limits, and only
 * where nothing has changed that could refuse it since.
 */
export type PolicyGrant = {
  /** The version of the user's limits by which the action was evaluated. */
  version: number
  countedMicros: bigint
  perDayMicros: bigint
  /** Counted where a chat has asked. */
  chatPerDayMicros: bigint
  /** The chain or venue whose switch stops the action. */
  chainId: string
  /** Not stopped by switches, limits or caps. */
  exit: boolean
  /** Not stopped by the switch of one venue. */
  exempt: boolean
}

/** The grant of an exit that moves nothing against the caps: only the signature asks the policy. */
export const exitGrant = (chainId: string): PolicyGrant => ({
  version: 0,
  countedMicros: 0n,
  perDayMicros: 0n,
  chatPerDayMicros: 0n,
  chainId,
  exit: true,
  exempt: true,
})
