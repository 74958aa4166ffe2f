import { type Files, fileBytesMax } from '#engines/files/files.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { NewFile } from '#kernel/wire/chat-answerer.ts'
import { type Queryable, query } from '#store/query.ts'
import { ClaimLost } from './event-writer.ts'

export type ChatFile = {
  chat_id: string
  file_id: string
  sha256: Buffer
  name: string
  content_type: string
  size: number
}

export const turnBytesMax = 4 * fileBytesMax
const filesMax = 20

/** The insertion checks the claim of the turn, so that an instance that lost the claim adds no file. */
const insertion = `insert into chat_file (chat_id, position, file_id, name, size)
  select $1, (select count(*) from chat_file where chat_id = $1), $2, $3, $4
  from task where id = $1 and status = 'running' and version = $5
  returning file_id`

const filesSql = `select c.chat_id, c.file_id, f.sha256, f.name, f.content_type, c.size
  from chat_file c join file f on f.id = c.file_id where c.chat_id = any($1::uuid[]) order by c.chat_id, c.position`

export const filesOf = (db: Queryable, chatIds: readonly string[]): Promise<ChatFile[]> =>
  query(db, filesSql, [chatIds])

type PublishDeps = { db: Queryable; files: Files }
type PublishedTurn = { chatId: string; userId: string; version: number }

/** Publishes files one after the other, and skips a file whose name the answer already has. */
export function createPublish({ db, files }: PublishDeps, { chatId, userId, version }: PublishedTurn) {
  let last: Promise<void> = Promise.resolve()
  const publish = async ({ name, contentType, bytes }: NewFile): Promise<void> => {
    const known = await filesOf(db, [chatId])
    if (known.some((file) => file.name === name)) return
    const total = known.reduce((sum, { size }) => sum + size, bytes.length)
    if (known.length >= filesMax || total > turnBytesMax)
      throw new Fault('conflict', `An answer has at most ${filesMax} files of ${turnBytesMax} bytes in all`, {
        extras: { bytes_max: turnBytesMax },
      })
    const stored = await files.put(userId, name, contentType, bytes)
    const values = [chatId, stored.id, stored.name, stored.size, version]
    if ((await query(db, insertion, values)).length === 0)
      throw new ClaimLost('another instance runs the turn')
  }
  return (file: NewFile): Promise<void> => {
    last = last.then(() => publish(file))
    // If the caller does not await this file, the publication of the next file reports its failure.
    last.catch(() => undefined)
    return last
  }
}

/** Returns files for the interface, with addresses that are valid for 15 minutes. */
export const fileViews = (files: Pick<Files, 'linkOf'>, rows: readonly ChatFile[]) =>
  Promise.all(
    rows.map(async ({ file_id, sha256, name, content_type, size }) => {
      const { url, expiresAt } = await files.linkOf({ id: file_id, sha256: sha256.toString('hex') })
      return { file_id, name, content_type, size, url, expires_at: expiresAt.toISOString() }
    }),
  )
export type ChatFileView = Awaited<ReturnType<typeof fileViews>>[number]
