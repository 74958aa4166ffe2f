import type { Fault } from '#kernel/contract/fault.ts'

/** The most that the task's transaction may cost its sponsor, counted against the user's budget of the day. */
export type GasCharge = {
  chainId: string
  wei: bigint
  /** The user's budget of the day; if null, the cost is counted but never refused. */
  budgetWei: bigint | null
  refuse(usedWei: bigint): Fault
}
