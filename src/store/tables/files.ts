export type FileContentRow = { sha256: Buffer; bytes: Buffer; stored_at: Date }
export type FileRow = {
  id: string
  user_id: string
  sha256: Buffer
  name: string
  content_type: string
  created_at: Date
}
export type FileKeyRow = {
  id: string
  ciphertext: Buffer
  wrapped_dek: Buffer
  kek_id: string
  created_at: Date
}
export type FileLinkEndRow = { user_id: string; ended_at: Date }
export type FileTables = {
  file_content: FileContentRow
  file: FileRow
  file_key: FileKeyRow
  file_link_end: FileLinkEndRow
}
