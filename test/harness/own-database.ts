import { type Database, openDatabase } from '#store/database.ts'
import { testDatabase } from './cluster.ts'

/** A database of its own, with connections of the test beside those of the instances. */
export async function ownDatabase(
  poolMax = 4,
): Promise<{ url: string; database: Database } & AsyncDisposable> {
  const home = await testDatabase()
  const database = openDatabase({ url: home.url, poolMax, applicationName: 'test' })
  return {
    url: home.url,
    database,
    async [Symbol.asyncDispose]() {
      await database.close()
      await home.drop()
    },
  }
}
