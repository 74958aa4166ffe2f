import type { Evm } from '#upstreams/evm/evm.ts'
import type { Sponsor } from '#upstreams/evm/sponsor.ts'

/** One chain with those who pay on it. */
export type EvmPort = { chain: Evm; sponsor: Sponsor }
