export type IdentityTables = {
  app_user: {
    id: string
    agent_id: string
    auth_scheme: string
    name: string | null
    email: string | null
    suspended_at: Date | null
    created_at: Date
  }
}
