/** Every operation, read from the contracts themselves: a new one joins each suite without being listed. */
import { globSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type Contract, type Entry, operationName } from '#kernel/contract/operation.ts'

export type KnownOperation = { name: string; entry: Entry }

const root = fileURLToPath(new URL('../../../', import.meta.url))

const isContract = (value: unknown): value is Contract =>
  typeof value === 'object' && value !== null && 'group' in value && 'entries' in value

export async function operations(): Promise<KnownOperation[]> {
  const files = globSync('src/features/*/contract.ts', { cwd: root }).sort()
  const modules = await Promise.all(
    files.map((file) => import(pathToFileURL(`${root}${file}`).href) as Promise<Record<string, unknown>>),
  )
  const contracts = modules.flatMap((module) => Object.values(module).filter(isContract))
  if (contracts.length < files.length) throw new Error('a contract file exports no contract')
  return contracts.flatMap(({ group, entries }) =>
    Object.entries(entries).map(([key, entry]) => ({ name: operationName(group, key), entry })),
  )
}

type Paths = Record<string, Record<string, { security: unknown[] }>>

/** One line per operation, to compare the contracts with a running gateway. */
export const declared = ({ entry: { method, path, access } }: KnownOperation): string =>
  `${method} ${path} ${access === 'public' ? 'public' : 'bearer'}`

export const served = (paths: Paths): string[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { security }]) =>
        `${method.toUpperCase()} ${path} ${security.length === 0 ? 'public' : 'bearer'}`,
    ),
  )

/** The operations of a running gateway, with their contracts. */
export async function operationsOf(url: string): Promise<KnownOperation[]> {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Paths }
  const lines = new Set(served(document.paths))
  return (await operations()).filter((known) => lines.has(declared(known)))
}
