import type { Generated, Selectable } from 'kysely'

type AgentWallet = {
  id: string
  user_id: string
  venue: string
  address: string
  ciphertext: Uint8Array
  wrapped_dek: Uint8Array
  kek_id: string
  version: number
  created_at: Date
  approved_at: Generated<Date | null>
  expires_at: Generated<Date | null>
  retired_at: Generated<Date | null>
}

export type AgentWalletRow = Selectable<AgentWallet>

export type VenueTables = {
  agent_wallet: AgentWallet
  venue_order: {
    cloid: string
    venue: string
    user_id: string
    task_id: string
    leg: string
    symbol: string
    at: Date
  }
  venue_credit: { venue: string; key: string; user_id: string; task_id: string; at: Date }
}
