import type { Generated } from 'kysely'

export type AdminActionRow = {
  id: Generated<bigint>
  at: Date
  actor: string
  reason: string | null
  command: string
  subject: string | null
  details: object
}

export type PausedSponsorRow = {
  chain: string
  signer: string
  since: Date
  set_by: string
  reason: string
}

export type AdminTables = { admin_action: AdminActionRow; paused_sponsor: PausedSponsorRow }
