-- Log rotation for MariaDB 10.11. On a schedule, an event replaces a log table by an empty one and
-- drops the oldest rotated tables. First edit the event at the end of this file: the log table, the
-- schedule, and how many rotated tables to keep. If you have several logs, make one event for each.
--
--   mariadb archive < rotate-log.mariadb.sql
--
-- You can run this file again. It then replaces its procedure and its event, and keeps the tables.
--
-- Set `event_scheduler = ON` in the section [mariadbd] of the configuration, because the server
-- runs no event otherwise, and SET GLOBAL is lost at a restart. To see that the event runs, in UTC:
--
--   SELECT event_name, status, last_executed FROM information_schema.events;
--   SELECT * FROM log_rotations;
--
-- The event runs as its definer, the user who ran this file or altered the event last. A definer
-- that can do only this and cannot log in:
--
--   CREATE USER log_rotation@localhost ACCOUNT LOCK;
--   GRANT SELECT, INSERT, UPDATE, CREATE, ALTER, DROP, TRIGGER, EVENT, EXECUTE ON archive.* TO log_rotation@localhost;
--   ALTER DEFINER = log_rotation@localhost EVENT rotate_import_log ENABLE;
--
-- The definer needs TRIGGER, because the procedure checks for triggers. The procedure cannot see a
-- foreign key of another database that references the log. After a rotation, that key references
-- the rotated table.
--
-- `mariadb-dump --events --routines archive` includes everything. The definer must exist on the
-- other server. A replica replicates the rotations and does not run the event. After you promote
-- it, enable the event there, with the ALTER above.
--
-- An id of a log is never issued twice, because the new table starts 1,000,000,000 above the
-- counter of the old one. For example, after the id 5,000 the new table continues at 1,000,005,001.
-- No server inserts that many rows before the rename, which waits at most 2 seconds for
-- transactions that use the log. If a writer chose an id that is further ahead, the procedure
-- reports it and continues above it. Nine million rotations fit 2^53.
--
-- New writers wait during these 2 seconds, too. If a transaction stays open, the log stays as it is
-- until the next run. A transaction that began before a rotation and reads the log after it fails
-- with error 1412. This includes `mariadb-dump --single-transaction`, so schedule the event at
-- another time than the backup.
--
-- Not tested: Galera, and MySQL 8, which has neither EXECUTE IMMEDIATE nor WAIT.

-- Set here, because a procedure keeps the mode in which it was created, and an event also the time
-- zone of its schedule.
SET @rotate_log_sql_mode = @@sql_mode, @rotate_log_time_zone = @@time_zone;
SET sql_mode = 'STRICT_ALL_TABLES', time_zone = '+00:00';

-- A row for each log with its last rotation and its last failure, in UTC. The error log of the
-- server has all failures of the event.
CREATE TABLE IF NOT EXISTS log_rotations (
  log_name VARCHAR(64) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin NOT NULL PRIMARY KEY,
  rotated_at DATETIME,
  rotated_to VARCHAR(64) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin,
  failed_at DATETIME,
  failure VARCHAR(512) CHARACTER SET utf8mb4
) ENGINE = InnoDB;

DELIMITER //

-- Rotates a log of this database unless it is empty. For example, `import_log` becomes
-- `import_log_2026_11_25_030000`, the time in UTC. Then drops all rotated tables but the last
-- `keep_count`. 0 or NULL keeps all. Does nothing while another session rotates the same log. After
-- an error, the log is either as before or completely rotated.
CREATE OR REPLACE PROCEDURE rotate_log(log_name VARCHAR(46) CHARACTER SET utf8mb3, keep_count INT UNSIGNED)
  MODIFIES SQL DATA SQL SECURITY INVOKER
rotation: BEGIN
  DECLARE ids_ahead BIGINT UNSIGNED DEFAULT 1000000000;
  -- That of a signed BIGINT, because half of an unsigned one is enough.
  DECLARE id_max BIGINT UNSIGNED DEFAULT 9223372036854775807;
  DECLARE lock_name VARCHAR(150) CHARACTER SET utf8mb3 DEFAULT CONCAT('rotate_log ', DATABASE(), '.', log_name);
  DECLARE next_name VARCHAR(64) CHARACTER SET utf8mb3 DEFAULT CONCAT(log_name, '_next');
  DECLARE rotated_name VARCHAR(64) CHARACTER SET utf8mb3
    DEFAULT CONCAT(log_name, DATE_FORMAT(UTC_TIMESTAMP(), '_%Y_%m_%d_%H%i%s'));
  DECLARE rotated_pattern VARCHAR(100) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin
    DEFAULT CONCAT('^\\Q', log_name, '\\E_[0-9]{4}_[0-9]{2}_[0-9]{2}_[0-9]{6}$');
  DECLARE first_id, last_counter BIGINT UNSIGNED;
  DECLARE cause VARCHAR(512) CHARACTER SET utf8mb4 DEFAULT 'this database has no such table. Create it';

  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    GET DIAGNOSTICS CONDITION 1 cause = MESSAGE_TEXT;
    DO RELEASE_LOCK(lock_name);
    INSERT INTO log_rotations (log_name, failed_at, failure) VALUES (log_name, UTC_TIMESTAMP(), cause)
      ON DUPLICATE KEY UPDATE failed_at = VALUES(failed_at), failure = cause;
    -- The caller gets the error. For an event, the error log gets it.
    RESIGNAL;
  END;

  IF GET_LOCK(lock_name, 0) IS NOT TRUE THEN
    LEAVE rotation;
  END IF;

  -- Rejected, because CREATE TABLE … LIKE copies no trigger and no foreign key, and RENAME TABLE
  -- takes them and the references to the log along. A partition may end below the new ids. A table
  -- that another session alters has no engine and no counter here.
  SELECT CASE
      WHEN table_type <> 'BASE TABLE' THEN CONCAT('it is a ', table_type, '. Use a plain table')
      WHEN engine <> 'InnoDB' THEN CONCAT('its engine is ', engine, '. Convert it to InnoDB')
      WHEN create_options LIKE '%partitioned%' THEN 'it is partitioned. Drop old partitions instead'
      WHEN auto_increment IS NULL THEN 'it has no AUTO_INCREMENT, or another session alters it. Add one, or wait'
      WHEN auto_increment > id_max - 2 * ids_ahead THEN CONCAT('its next id ', auto_increment, ' is near the maximum. Start another log')
      WHEN EXISTS (SELECT 1 FROM information_schema.columns AS c
        WHERE c.table_schema = DATABASE() AND c.table_name = log_name AND extra LIKE '%auto_increment%' AND data_type <> 'bigint')
        THEN 'its id is no BIGINT. Change the column'
      WHEN EXISTS (SELECT 1 FROM information_schema.triggers
        WHERE event_object_schema = DATABASE() AND event_object_table = log_name)
        THEN 'it has a trigger. Drop the trigger'
      WHEN EXISTS (SELECT 1 FROM information_schema.key_column_usage AS k
        WHERE (k.table_schema = DATABASE() AND k.table_name = log_name AND referenced_table_name IS NOT NULL)
           OR (referenced_table_schema = DATABASE() AND referenced_table_name = log_name))
        THEN 'it has a foreign key, or one references it. Drop the foreign key'
    END INTO cause
    FROM information_schema.tables AS t WHERE t.table_schema = DATABASE() AND t.table_name = log_name;
  IF cause IS NOT NULL THEN
    SET cause = CONCAT('Log "', log_name, '" was not rotated: ', cause, '.');
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = cause;
  END IF;

  EXECUTE IMMEDIATE CONCAT('SELECT EXISTS (SELECT 1 FROM `', log_name, '`) INTO @rotate_log_has_rows');
  IF @rotate_log_has_rows THEN
    -- If the clock was set back, a rotation would order the rotated tables wrongly, and drop a
    -- newer one.
    SELECT MAX(table_name) INTO cause FROM information_schema.tables
      WHERE table_schema = DATABASE() AND table_name REGEXP rotated_pattern AND table_name >= rotated_name;
    IF cause IS NOT NULL THEN
      SET cause = CONCAT('Log "', log_name, '" was not rotated: "', cause, '" exists, and its time is not past. Wait or rename it.');
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = cause;
    END IF;

    -- A run that failed leaves an empty table, whose counter may be too low now. A table with rows
    -- is not ours.
    IF EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = next_name) THEN
      EXECUTE IMMEDIATE CONCAT('SELECT EXISTS (SELECT 1 FROM `', next_name, '`) INTO @rotate_log_has_rows');
      IF @rotate_log_has_rows THEN
        SET cause = CONCAT('Log "', log_name, '" was not rotated: "', next_name, '" has rows. Rename that table.');
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = cause;
      END IF;
      EXECUTE IMMEDIATE CONCAT('DROP TABLE `', next_name, '` WAIT 2');
    END IF;
    EXECUTE IMMEDIATE CONCAT('CREATE TABLE `', next_name, '` LIKE `', log_name, '`');

    -- The counter and not the greatest id, because rows at the end may be deleted, or not committed
    -- yet.
    SELECT auto_increment + ids_ahead INTO first_id
      FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = log_name;
    EXECUTE IMMEDIATE CONCAT('ALTER TABLE `', next_name, '` AUTO_INCREMENT = ', first_id);
    EXECUTE IMMEDIATE CONCAT('RENAME TABLE `', log_name, '` WAIT 2 TO `', rotated_name, '`, `', next_name, '` TO `', log_name, '`');
    INSERT INTO log_rotations (log_name, rotated_at, rotated_to) VALUES (log_name, UTC_TIMESTAMP(), rotated_name)
      ON DUPLICATE KEY UPDATE rotated_at = VALUES(rotated_at), rotated_to = VALUES(rotated_to);

    -- Nothing inserts into the rotated table any more, so its counter is final.
    SELECT auto_increment INTO last_counter
      FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = rotated_name;
    IF (last_counter <= first_id) IS NOT TRUE THEN
      EXECUTE IMMEDIATE CONCAT('ALTER TABLE `', log_name, '` WAIT 2 AUTO_INCREMENT = ', last_counter + ids_ahead);
      SET cause = CONCAT('Ids of log "', log_name, '" may repeat: "', rotated_name, '" reached ', last_counter - 1, ', the log started at ',
        first_id, '. Compare both.');
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = cause;
    END IF;
  END IF;

  IF keep_count > 0 THEN
    FOR old IN (SELECT table_name FROM information_schema.tables
      WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' AND table_name REGEXP rotated_pattern
      ORDER BY table_name DESC LIMIT 1000000 OFFSET keep_count)
    DO
      EXECUTE IMMEDIATE CONCAT('DROP TABLE `', old.table_name, '` WAIT 2');
    END FOR;
  END IF;
  DO RELEASE_LOCK(lock_name);
END//

DELIMITER ;

-- Rotates every night at 3:00 UTC, and keeps 30 rotated tables.
CREATE OR REPLACE EVENT rotate_import_log
  ON SCHEDULE EVERY 1 DAY STARTS '2026-01-01 03:00:00'
  DO CALL rotate_log('import_log', 30);

SET sql_mode = @rotate_log_sql_mode, time_zone = @rotate_log_time_zone;
