import type { Evm } from '#upstreams/evm/evm.ts'
import type { Sponsor } from '#upstreams/evm/sponsor.ts'

/** One chain and its sponsor. */
export type EvmPort = { chain: Evm; sponsor: Sponsor }
