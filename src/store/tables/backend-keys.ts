export type BackendRow = { id: string; name: string; account_id: string | null; created_at: Date }
export type BackendKeyRow = {
  id: string
  backend_id: string
  key_hash: Buffer
  created_at: Date
  expires_at: Date | null
}
export type BackendRequestRow = { backend_id: string; key_hash: Buffer; user_id: string; at: Date }
export type ImageTables = {
  backend: BackendRow
  backend_key: BackendKeyRow
  backend_request: BackendRequestRow
}
