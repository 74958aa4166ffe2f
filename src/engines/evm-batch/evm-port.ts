import type { Evm } from '#upstreams/evm/evm.ts'
import type { ReceiptWatcher } from '#upstreams/evm/receipt-watcher.ts'
import type { Sponsor } from '#upstreams/evm/sponsor.ts'

/** One chain, its sponsor, and the watcher of its receipts. */
export type EvmPort = { chain: Evm; sponsor: Sponsor; watcher: ReceiptWatcher }
