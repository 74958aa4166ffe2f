import { open, readFile, rename } from 'node:fs/promises'

/** Readers see the old content or the new one, never a partial write. */
export const replaceFile = async (path: string, content: string | Uint8Array): Promise<void> => {
  const draft = `${path}.draft`
  const file = await open(draft, 'w')
  try {
    await file.writeFile(content)
  } finally {
    await file.close()
  }
  await rename(draft, path)
}

export const readIfPresent = async (path: string): Promise<string | undefined> => {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
