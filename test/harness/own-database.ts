import { type Database, openDatabase } from '#store/database.ts'
import { type TestDatabase, testDatabase } from './cluster.ts'

/** A database of its own, or the given one, with connections of the test beside those of the instances. */
export async function ownDatabase(
  poolMax = 4,
  given?: Pick<TestDatabase, 'url' | 'drop'>,
): Promise<{ url: string; database: Database } & AsyncDisposable> {
  const home = given ?? (await testDatabase())
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
