import type { NamedExecution } from '#kernel/task/execution-id.ts'
import type { DraftOrder, DraftResult } from '#upstreams/solana/draft.ts'
import type { Landing } from '#upstreams/solana/landing.ts'
import type { WalletChange } from '#upstreams/solana/payments.ts'
import type { FoundTransaction, Search } from '#upstreams/solana/reference.ts'
import type { SignatureWatcher } from '#upstreams/solana/signature-watcher.ts'
import type { LandedTransaction, Solana } from '#upstreams/solana/solana.ts'
import type { SvmSponsor } from '#upstreams/solana/sponsor.ts'

export type SvmPort = {
  chain: Solana
  sponsor: SvmSponsor
  watcher: SignatureWatcher
  draft(order: DraftOrder): Promise<DraftResult>
  /** Returns the address by which the transaction of an execution is found. */
  referenceOf(execution: NamedExecution): string
  /**
   * Returns the account's transaction that names the reference and did not fail. Throws while it is not final, or
   * if the node keeps too little history to know that there is none.
   */
  findReferenced(search: Search): Promise<FoundTransaction | undefined>
  /** Returns the final transactions that moved the wallet since the slot, or undefined if there are too many. */
  changesSince(wallet: {
    wallet: string
    tokens: readonly string[]
    fromSlot: bigint
  }): Promise<WalletChange[] | undefined>
  /** Returns what a transaction changed for this account; `raw` is the stored bytes. */
  readLanding(landed: LandedTransaction, of: { raw: string; account: string }): Landing
}
