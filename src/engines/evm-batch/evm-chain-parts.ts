import type { Evm } from '#upstreams/evm/evm.ts'
import type { ReceiptWatcher } from '#upstreams/evm/receipt-watcher.ts'
import type { Sponsor } from '#upstreams/evm/sponsor.ts'
import type { Broadcasts } from './broadcasts.ts'

export type EvmPort = { chain: Evm; sponsor: Sponsor; watcher: ReceiptWatcher; broadcasts: Broadcasts }
