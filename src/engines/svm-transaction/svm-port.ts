import type { NamedExecution } from '#kernel/task/execution-id.ts'
import type { DraftOrder, DraftResult } from '#upstreams/solana/draft.ts'
import type { Landing } from '#upstreams/solana/landing.ts'
import type { WalletChange } from '#upstreams/solana/payments.ts'
import type { FoundTransaction, Search } from '#upstreams/solana/reference.ts'
import type { SignatureWatcher } from '#upstreams/solana/signature-watcher.ts'
import type { LandedTransaction, Solana } from '#upstreams/solana/solana.ts'
import type { SvmSponsor } from '#upstreams/solana/sponsor.ts'

/** One chain, its sponsor, and the watcher of its signatures. */
export type SvmPort = {
  chain: Solana
  sponsor: SvmSponsor
  watcher: SignatureWatcher
  draft(order: DraftOrder): Promise<DraftResult>
  /** The address by which the transaction of an execution is found. */
  referenceOf(execution: NamedExecution): string
  /**
   * The transaction of the account that names the reference and did not fail; throws while it is not final, and where
   * the node keeps too little history to know that there is none.
   */
  findReferenced(search: Search): Promise<FoundTransaction | undefined>
  /** The final transactions since the slot that moved the wallet; undefined where they are too many. */
  changesSince(wallet: {
    wallet: string
    tokens: readonly string[]
    fromSlot: bigint
  }): Promise<WalletChange[] | undefined>
  /** What a transaction changed for this account; `raw`: the stored bytes. */
  readLanding(landed: LandedTransaction, of: { raw: string; account: string }): Landing
}
