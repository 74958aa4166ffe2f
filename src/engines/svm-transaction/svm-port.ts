import type { NamedExecution } from '#kernel/task/execution-id.ts'
import type { FoundTransaction, Search } from '#upstreams/solana/execution-reference.ts'
import type { WalletChange } from '#upstreams/solana/incoming-transfers.ts'
import type { Landing } from '#upstreams/solana/landed-balance-changes.ts'
import type { SignatureWatcher } from '#upstreams/solana/signature-watcher.ts'
import type { LandedTransaction, Solana } from '#upstreams/solana/solana.ts'
import type { SvmSponsor } from '#upstreams/solana/sponsor.ts'
import type { DraftOrder, DraftResult } from '#upstreams/solana/transaction-draft.ts'

export type SvmPort = {
  chain: Solana
  sponsor: SvmSponsor
  watcher: SignatureWatcher
  draft(order: DraftOrder): Promise<DraftResult>
  /** Returns the address by which the transaction of an execution is found. */
  referenceOf(execution: NamedExecution): string
  /**
   * Returns the account's transaction that names the reference and did not fail. Throws while such a transaction is
   * not final, or if the node's history is too short to show that there is none.
   */
  findReferenced(search: Search): Promise<FoundTransaction | undefined>
  /** Returns the final transactions that moved a wallet's balance since a slot; undefined if there are too many. */
  changesSince(wallet: {
    wallet: string
    tokens: readonly string[]
    fromSlot: bigint
  }): Promise<WalletChange[] | undefined>
  /** Returns the changes that a transaction made to an account; `raw` has the transaction's stored bytes. */
  readLanding(landed: LandedTransaction, of: { raw: string; account: string }): Landing
}
