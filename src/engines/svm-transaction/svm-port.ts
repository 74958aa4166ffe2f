import type { DraftOrder, DraftResult } from '#upstreams/solana/draft.ts'
import type { Landing } from '#upstreams/solana/landing.ts'
import type { SignatureWatcher } from '#upstreams/solana/signature-watcher.ts'
import type { LandedTransaction, Solana } from '#upstreams/solana/solana.ts'
import type { SvmSponsor } from '#upstreams/solana/sponsor.ts'

/** One chain, its sponsor, and the watcher of its signatures. */
export type SvmPort = {
  chain: Solana
  sponsor: SvmSponsor
  watcher: SignatureWatcher
  draft(order: DraftOrder): Promise<DraftResult>
  /** What a transaction changed for this account; `raw`: the stored bytes. */
  readLanding(landed: LandedTransaction, of: { raw: string; account: string }): Landing
}
