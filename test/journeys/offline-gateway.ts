/** Installations with an embedded database and without upstreams: a backup contains the database. */
import { join } from 'node:path'
import { type Operator, operatorOf } from '../harness/admin.ts'
import { bearer, dataFolder, type Gateway, http, launch, upstreamsAt } from '../harness/gateway.ts'

export const offlineSettings = {
  ...upstreamsAt('off'),
  RATE_AUTH: '100000',
}

/** Each installation is a data folder, by its name. */
export function offlineInstallations() {
  const folder = dataFolder()
  const path = (name: string) => join(folder.path, name)
  const envOf = (name: string) => ({ ...offlineSettings, DATA_DIR: path(name) })
  return {
    path,
    envOf,
    launch: (name: string): Promise<Gateway> => launch({ env: envOf(name) }),
    operator: (name: string): Operator => operatorOf(envOf(name)),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  }
}

/** Whether the gateway knows the token. */
export const isKnown = async (url: string, token: string): Promise<boolean> =>
  (await http(`${url}/v1/user`, { headers: bearer({ token }) })).status === 200
